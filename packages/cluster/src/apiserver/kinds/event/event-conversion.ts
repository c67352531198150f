import type { JsonObject } from '@thv/kube-schema/kind-schema'

/** `events.k8s.io/v1` and `v1` name the same members differently. Events are stored in the form of the core group. */
const NAMES: readonly (readonly [core: string, grouped: string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
]
const TO_CORE = new Map(NAMES.map(([core, grouped]) => [grouped, core]))
const TO_GROUP = new Map(NAMES)

export const eventToCore = (event: JsonObject): JsonObject => renamed(event, TO_CORE)
export const eventFromCore = (event: JsonObject): JsonObject => renamed(withoutEmpty(event), TO_GROUP)

/** The core form always has both, the other only when they say something. */
function withoutEmpty(event: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(event).filter(([name, value]) => value !== '' || !name.startsWith('reporting')))
}

function renamed(object: JsonObject, names: ReadonlyMap<string, string>): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [names.get(name) ?? name, value]))
}
