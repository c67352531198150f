import type { JsonObject } from '../json-rpc.ts'
import { METHODS } from '../methods.ts'

/** Settings of a legacy session that the next one needs too, should the server forget the first. */
export interface LegacyMemory {
  /** After a request that succeeded. */
  note(method: string, params: JsonObject): void
  entries(): readonly (readonly [method: string, params: JsonObject])[]
}

export function createLegacyMemory(): LegacyMemory {
  let level: JsonObject | undefined
  const subscriptions = new Map<unknown, JsonObject>()
  return {
    note(method, params) {
      if (method === METHODS.setLevel) level = params
      else if (method === METHODS.resourcesSubscribe) subscriptions.set(params['uri'], params)
      else if (method === METHODS.resourcesUnsubscribe) subscriptions.delete(params['uri'])
    },
    entries: () => [
      ...(level ? [[METHODS.setLevel, level] as const] : []),
      ...[...subscriptions.values()].map((params) => [METHODS.resourcesSubscribe, params] as const),
    ],
  }
}
