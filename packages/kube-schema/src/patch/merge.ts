import type { Json, JsonObject, ListMerge, MergeSchema } from '../kind-schema.ts'
import { fieldStep, isMapValue, itemStep, itemsByStep, shapeOf } from './typed-value.ts'

/** The live object with the applied one, which has passed `typedProblems`, laid over it. */
export function merge(live: JsonObject, applied: JsonObject, schema: MergeSchema): JsonObject {
  return (mergeValue({ live, applied, path: [] }, schema) ?? {}) as JsonObject
}

interface Pair {
  readonly live: Json | undefined
  readonly applied: Json | undefined
  readonly path: readonly string[]
}

function mergeValue({ live, applied, path }: Pair, schema: MergeSchema): Json | undefined {
  if (applied === undefined) return live
  const shape = shapeOf(applied, schema)
  if (shape.kind === 'leaf' || shapeOf(live, schema).kind !== shape.kind) return applied
  if (shape.kind === 'list') return mergeLists({ live: live as readonly Json[], applied: applied as readonly Json[], path }, shape.schema)
  const left = live as JsonObject
  const right = applied as JsonObject
  const members: [string, Json][] = []
  for (const name of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const inner = { live: own(left, name), applied: own(right, name), path: [...path, fieldStep(name)] }
    const merged = mergeValue(inner, shape.member(name))
    if (merged !== undefined) members.push([name, merged])
  }
  return Object.fromEntries(members)
}

/**
 * Keeps the order of the live list for what only it has and the order of the applied list for the rest: an applied item
 * stands before the first live item that follows it in both.
 */
function mergeLists(
  { live, applied, path }: { live: readonly Json[]; applied: readonly Json[]; path: readonly string[] },
  schema: ListMerge,
): Json[] {
  const right = new Map(applied.map((item) => [itemStep(item, schema, path), item]))
  const left = live.map((item) => ({ step: itemStep(item, schema, path), item }))
  const leftSteps = new Set(left.map(({ step }) => step))
  const counts = itemsByStep(live, schema, path)
  const shared = [...right.keys()].filter((step) => leftSteps.has(step))
  const done = new Set<string>()
  const out: Json[] = []
  const order = [...right.keys()]
  let nextShared = 0
  let r = 0
  let l = 0
  const take = (step: string) => {
    const same = counts.get(step) ?? []
    // items that stand there more than once are not merged, only replaced
    const merged = mergeValue(
      { live: same.length === 1 ? same[0] : undefined, applied: right.get(step), path: [...path, step] },
      schema.item(),
    )
    if (merged !== undefined) out.push(merged)
    done.add(step)
    if (shared[nextShared] === step) nextShared += 1
    r += 1
  }
  while (l < left.length || r < order.length) {
    const at = left[l]
    const step = order[r]
    if (at && step !== undefined && at.step === step) {
      take(step)
      l += 1
    } else if (at && step !== undefined && right.has(at.step) && shared[nextShared] !== undefined && shared[nextShared] !== at.step) l += 1
    else if (at && !right.has(at.step)) {
      out.push(at.item)
      l += 1
    } else {
      if (at && done.has(at.step)) l += 1
      if (step !== undefined) take(step)
    }
  }
  return out
}

function own(object: JsonObject, name: string): Json | undefined {
  return isMapValue(object) && Object.hasOwn(object, name) ? object[name] : undefined
}
