import type { Route, View } from '../aggregate/aggregate.ts'

/** Finds the tool that a step names: under the name that clients see or would see, or as `workload.tool` with the real name. */
export function stepTargets(view: View): (tool: string) => Route | undefined {
  const byWorkload = new Map<string, Route>()
  for (const routes of [view.tools, view.hiddenTools]) {
    for (const route of routes.values()) {
      for (const [backend, original] of route.selector?.backends ?? [[route.backend, route.original]])
        if (!byWorkload.has(`${backend}.${original}`)) byWorkload.set(`${backend}.${original}`, plainRoute(route, backend, original))
    }
  }
  return (tool) => view.tools.get(tool) ?? view.hiddenTools.get(tool) ?? byWorkload.get(tool)
}

/** The step has chosen the backend already. */
function plainRoute({ key, item }: Route, backend: string, original: string): Route {
  return { key, item, backend, original }
}
