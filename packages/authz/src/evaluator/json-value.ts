import { extensionOf } from './extensions.ts'
import { CedarRecord, CedarSet, EntityUid, Failure, UNKNOWN, type Value } from './value.ts'

/** Literal texts that cannot be taken: the policy or the entities must be changed. */
export class UnsupportedPolicy extends Error {}

/** A value in the JSON form of policies and entities. Throws UnsupportedPolicy for what Cedar has no value for. */
export function valueOfJson(json: unknown): Value {
  if (typeof json === 'string' || typeof json === 'boolean') return json
  if (typeof json === 'number') {
    // The parser hands over numbers as doubles: beyond this they may have been rounded.
    if (!Number.isSafeInteger(json)) throw new UnsupportedPolicy(`${json} is not a whole number between -(2^53-1) and 2^53-1`)
    return BigInt(json)
  }
  if (Array.isArray(json)) return new CedarSet(json.map(valueOfJson))
  if (typeof json !== 'object' || json === null) throw new UnsupportedPolicy('null is not a value of Cedar')
  if ('__entity' in json) return uidOfJson(json)
  if ('__extn' in json) return extensionValue(json.__extn as { fn: string; arg?: unknown; args?: unknown[] })
  return new CedarRecord(new Map(Object.entries(json).map(([name, member]) => [name, valueOfJson(member)])))
}

function extensionValue({ fn, arg, args = [arg] }: { fn: string; arg?: unknown; args?: unknown[] }): Value {
  const value = extensionOf(fn, args.map(valueOfJson))
  if (value === UNKNOWN || value instanceof Failure) throw new UnsupportedPolicy(value === UNKNOWN ? fn : value.message)
  return value
}

export function uidOfJson(json: unknown): EntityUid {
  const { type, id } = ((json as { __entity?: unknown }).__entity ?? json) as { type?: unknown; id?: unknown }
  if (typeof type !== 'string' || typeof id !== 'string') throw new UnsupportedPolicy('an entity needs a type and an id')
  return new EntityUid(type, id)
}
