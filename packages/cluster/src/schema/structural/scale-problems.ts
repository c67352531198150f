import type { FieldProblem, Json, JsonObject } from '../../apiserver/kind-schema.ts'
import { invalid } from '../field-problems.ts'
import { isMap, own } from './schema-node.ts'

const MAX_INT32 = 2_147_483_647

export interface ScalePaths {
  readonly specReplicasPath: string
  readonly statusReplicasPath: string
  readonly labelSelectorPath?: string
}

export function scaleProblems(object: JsonObject, scale: ScalePaths | undefined): FieldProblem[] {
  if (!scale) return []
  return [scale.specReplicasPath, scale.statusReplicasPath].flatMap((path) => replicaProblems(path, valueAt(object, path)))
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
