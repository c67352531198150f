import type { Json } from '@thv/kube-schema/kind-schema'
import { isObject } from '../objects/served-kind.ts'

type Step =
  | { readonly kind: 'members'; readonly names: readonly string[] }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'filter'; readonly path: readonly string[]; readonly value: string }

/**
 * The part of JSONPath that printer columns are made of: members, `['name']`, `['one','other']`, `[0]`, `[*]` and `[?(@.type=="Ready")]`. Compiles once;
 * undefined when the path is something else.
 */
export function compilePrinterPath(path: string): ((object: Json) => Json[]) | undefined {
  const steps: Step[] = []
  let rest = path
    .trim()
    .replace(/^\{(.*)\}$/s, '$1')
    .replace(/^\$/, '')
  while (rest !== '') {
    const found = nextStep(rest)
    if (found === undefined) return undefined
    if (found.step) steps.push(found.step)
    rest = rest.slice(found.length)
  }
  return (object) => steps.reduce<Json[]>((values, step) => values.flatMap((value) => take(value, step)), [object])
}

function nextStep(text: string): { step?: Step; length: number } | undefined {
  const member = /^\.?((?:\\.|[A-Za-z0-9_\-/])+)/.exec(text)
  if (member?.[1] !== undefined)
    return { step: { kind: 'members', names: [member[1].replaceAll(/\\(.)/g, '$1')] }, length: member[0].length }
  const quoted = /^\.?\[((?:'[^']*'|"[^"]*")(?:\s*,\s*(?:'[^']*'|"[^"]*"))*)\]/.exec(text)
  if (quoted?.[1] !== undefined) {
    const names = [...quoted[1].matchAll(/'([^']*)'|"([^"]*)"/g)].map(([, single, double]) => single ?? double ?? '')
    return { step: { kind: 'members', names }, length: quoted[0].length }
  }
  const index = /^\.?\[(-?\d+)\]/.exec(text)
  if (index) return { step: { kind: 'index', index: Number(index[1]) }, length: index[0].length }
  const all = /^(?:\.?\[\*\]|\.\*)/.exec(text)
  if (all) return { step: { kind: 'all' }, length: all[0].length }
  const filter = /^\.?\[\?\(\s*@\.([A-Za-z0-9_.-]+)\s*==\s*(?:"([^"]*)"|'([^']*)')\s*\)\]/.exec(text)
  if (filter)
    return { step: { kind: 'filter', path: (filter[1] ?? '').split('.'), value: filter[2] ?? filter[3] ?? '' }, length: filter[0].length }
  return text === '.' ? { length: 1 } : undefined
}

function take(value: Json, step: Step): Json[] {
  switch (step.kind) {
    case 'members':
      return step.names.flatMap((name) => {
        const found = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
        return found === undefined ? [] : [found]
      })
    case 'index': {
      const found = Array.isArray(value) ? value.at(step.index) : undefined
      return found === undefined ? [] : [found as Json]
    }
    case 'all':
      return Array.isArray(value) ? [...(value as Json[])] : isObject(value) ? Object.values(value) : []
    case 'filter':
      return Array.isArray(value) ? (value as Json[]).filter((item) => matches(item, step.path, step.value)) : []
  }
}

function matches(item: Json, path: readonly string[], wanted: string): boolean {
  let value: Json | undefined = item
  for (const name of path) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value !== undefined && String(value) === wanted
}
