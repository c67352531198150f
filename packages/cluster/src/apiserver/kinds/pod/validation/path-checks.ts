import { invalid } from '@thv/kube-schema/field-problems'
import type { FieldProblem } from '@thv/kube-schema/kind-schema'

/** A path that must not lead out of where it begins. */
export function noStepsBack(path: string, field: string): FieldProblem[] {
  return path.split('/').includes('..') ? [invalid(field, path, "must not contain '..'")] : []
}

export function descendingPath(path: string, field: string): FieldProblem[] {
  return [...(path.startsWith('/') ? [invalid(field, path, 'must be a relative path')] : []), ...noStepsBack(path, field)]
}

/** The same for a file in a volume, where names that begin with two dots belong to the node. */
export function filePath(path: string, field: string): FieldProblem[] {
  const reserved = path.startsWith('..') && !path.startsWith('../')
  return [...descendingPath(path, field), ...(reserved ? [invalid(field, path, "must not start with '..'")] : [])]
}
