import type { CanonicalMCPToolConfigSpec } from '@thv/resources/kinds/mcp-tool-config/normalise'

export interface ToolConfigFindings {
  /** The configuration cannot be used. */
  readonly problems: readonly string[]
  /** It can be used, but hardly as it was meant. */
  readonly warnings: readonly string[]
}

type Overrides = CanonicalMCPToolConfigSpec['toolsOverride']

/** Checks that no schema can express, and checks of objects that were stored before the schema. Pure. */
export function validateToolConfig({ toolsFilter, toolsOverride }: CanonicalMCPToolConfigSpec): ToolConfigFindings {
  const problems = [
    ...toolsFilter.flatMap((name) => nameProblem('toolsFilter', name)),
    ...Object.entries(toolsOverride).flatMap(([tool, override]) => overrideProblems(tool, override)),
    ...sharedNames(toolsOverride),
  ]
  return { problems, warnings: [...filterWarnings(toolsFilter, toolsOverride), ...idleRenames(toolsOverride)] }
}

function overrideProblems(tool: string, override: Overrides[string]): string[] {
  const field = `toolsOverride.${tool}`
  if (tool === '') return ['toolsOverride has an empty key: use the name that the server gives the tool']
  const setsNothing =
    override.name === undefined && override.description === undefined && Object.keys(override.annotations ?? {}).length === 0
  return [
    ...nameProblem('toolsOverride', tool),
    ...(setsNothing ? [`${field} changes nothing: set name, description or annotations, or remove it`] : []),
    ...(override.name === undefined ? [] : nameProblem(`${field}.name`, override.name)),
    ...(override.description === '' ? [`${field}.description is empty: remove it or write one`] : []),
  ]
}

function nameProblem(field: string, name: string): string[] {
  if (name === '') return [`${field} holds an empty name: remove it`]
  return /[,\r\n]/.test(name) ? [`${field} holds the name ${JSON.stringify(name)}: a name must not contain a comma or a line end`] : []
}

/** Clients could not tell the tools apart. Two that the server itself names alike are not seen here: their names are not known. */
function sharedNames(overrides: Overrides): string[] {
  const originals = new Map<string, string[]>()
  for (const [tool, { name = tool }] of Object.entries(overrides)) originals.set(name, [...(originals.get(name) ?? []), tool])
  return [...originals]
    .filter(([, tools]) => tools.length > 1)
    .map(([name, tools]) => `toolsOverride gives ${tools.toSorted().join(' and ')} the same name ${name}: choose different names`)
}

/** The filter uses the names that clients see. An entry with the real name most likely means the tool itself. */
function filterWarnings(filter: readonly string[], overrides: Overrides): string[] {
  const newNames = new Set(Object.values(overrides).flatMap(({ name }) => (name === undefined ? [] : [name])))
  return filter.flatMap((entry) => {
    const name = Object.hasOwn(overrides, entry) ? overrides[entry]?.name : undefined
    if (name === undefined || name === entry || newNames.has(entry)) return []
    return [`toolsFilter names ${entry}, which clients see as ${name}, so it matches no tool: write ${name}`]
  })
}

function idleRenames(overrides: Overrides): string[] {
  return Object.entries(overrides)
    .filter(([tool, { name }]) => name === tool)
    .map(([tool]) => `toolsOverride.${tool}.name is the name that the tool has anyway`)
}
