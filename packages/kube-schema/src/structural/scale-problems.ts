import { invalid } from '../field-problems.ts'
import type { FieldProblem, Json, JsonObject } from '../kind-schema.ts'
import { isMap, own } from '../schema-node.ts'
import { goText, goType } from '../values/go-text.ts'

const MAX_INT32 = 2_147_483_647

export interface ScalePaths {
  readonly specReplicasPath: string
  readonly statusReplicasPath: string
  readonly labelSelectorPath?: string
}

export function scaleProblems(object: JsonObject, scale: ScalePaths | undefined): FieldProblem[] {
  if (!scale) return []
  return [scale.specReplicasPath, scale.statusReplicasPath].flatMap((path) => {
    const problem = accessProblem(object, path)
    return problem === undefined ? replicaProblems(path, valueAt(object, path)) : [invalid(path, 0, `${path} accessor error: ${problem}`)]
  })
}

/** Whatever is on the way must be a map, and the end of it a whole number. */
function accessProblem(object: JsonObject, path: string): string | undefined {
  const names = path.replace(/^\./, '').split('.')
  let value: Json = object
  for (const name of names) {
    if (!isMap(value)) return `${goText(value)} is of the type ${goType(value)}, expected map[string]interface{}`
    const next: Json | undefined = own(value, name)
    if (next === undefined) return undefined
    value = next
  }
  return Number.isInteger(value) ? undefined : `${goText(value)} is of the type ${goType(value)}, expected int64`
}

export function valueAt(object: JsonObject, path: string): Json | undefined {
  const names = path.replace(/^\./, '').split('.')
  return names.reduce<Json | undefined>((value, name) => (isMap(value) ? own(value, name) : undefined), object)
}

function replicaProblems(path: string, value: Json | undefined): FieldProblem[] {
  if (typeof value !== 'number') return []
  if (value < 0) return [invalid(path, value, 'should be a non-negative integer')]
  return value > MAX_INT32 ? [invalid(path, value, `should be less than or equal to ${MAX_INT32}`)] : []
}
