import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { at, isObject, textAt } from '../objects/served-kind.ts'
import { versionsOf } from './custom-kinds.ts'

/**
 * The status of a definition, complete with the write itself: its kinds are served as soon as the answer is out. `taken` says why another
 * definition's names are in the way.
 */
export function withCrdStatus(crd: JsonObject, taken: string | undefined, now: string): JsonObject {
  const old = crd['status']
  const storage = versionsOf(crd).find((version) => version['storage'] === true)
  const before = at(old, 'storedVersions')
  const stored = new Set(Array.isArray(before) ? before.map(String) : [])
  if (storage) stored.add(textAt(storage, 'name'))
  const accepted = taken === undefined
  const namesReason = accepted ? ['NoConflicts', 'no conflicts found'] : ['PluralConflict', taken ?? '']
  const conditions = [
    condition(old, 'NamesAccepted', accepted, namesReason, now),
    condition(
      old,
      'Established',
      accepted,
      accepted ? ['InitialNamesAccepted', 'the initial names have been accepted'] : ['NotAccepted', 'not all names are accepted'],
      now,
    ),
  ]
  const acceptedNames = accepted ? (at(crd, 'spec', 'names') ?? {}) : { plural: '', kind: '' }
  return { ...crd, status: { conditions, acceptedNames, storedVersions: [...stored] } }
}

export function isEstablished(crd: JsonObject): boolean {
  const conditions = at(crd, 'status', 'conditions')
  return Array.isArray(conditions) && conditions.some((one) => textAt(one, 'type') === 'Established' && textAt(one, 'status') === 'True')
}

function condition(old: unknown, type: string, holds: boolean, [reason = '', message = '']: readonly string[], now: string): JsonObject {
  const status = holds ? 'True' : 'False'
  const conditions = isObject(old) ? old['conditions'] : undefined
  const before = Array.isArray(conditions) ? conditions.find((one) => isObject(one) && one['type'] === type) : undefined
  const since = isObject(before) && before['status'] === status ? textAt(before, 'lastTransitionTime') : now
  return { type, status, lastTransitionTime: since, reason, message }
}
