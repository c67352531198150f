import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { isObject } from '../../objects/served-kind.ts'

/*
 * The real server reads an object into structs and writes it from them, so a field with nothing in it disappears. Which empty values stay is
 * a property of the field: those of pointers do, and those of fields that are always written.
 */

const DROPPED_FLAGS: ReadonlySet<string> = new Set([
  'hostIPC',
  'hostNetwork',
  'hostPID',
  'paused',
  'readOnly',
  'stdin',
  'stdinOnce',
  'tty',
  'chapAuthDiscovery',
  'chapAuthSession',
  'sslEnabled',
])

const DROPPED_ZEROS: ReadonlySet<string> = new Set([
  'failureThreshold',
  'hostPort',
  'initialDelaySeconds',
  'minReadySeconds',
  'periodSeconds',
  'successThreshold',
  'timeoutSeconds',
])

/** Texts that stay when they are empty. */
const KEPT_TEXTS: ReadonlySet<string> = new Set([
  'claimName',
  'conditionType',
  'devicePath',
  'driver',
  'fieldPath',
  'fsGroupChangePolicy',
  'ip',
  'key',
  'localhostProfile',
  'mountPath',
  'mountPropagation',
  'operator',
  'preemptionPolicy',
  'procMount',
  'recursiveReadOnly',
  'resource',
  'runtimeClassName',
  'seLinuxChangePolicy',
  'server',
  'service',
  'serviceName',
  'storageClassName',
  'supplementalGroupsPolicy',
  'topologyKey',
  'volumeMode',
  'whenUnsatisfiable',
])

const MAPS: ReadonlySet<string> = new Set([
  'annotations',
  'labels',
  'limits',
  'matchLabels',
  'nodeSelector',
  'options',
  'overhead',
  'requests',
  'volumeAttributes',
])

const TEXT_LISTS: ReadonlySet<string> = new Set([
  'accessModes',
  'add',
  'args',
  'command',
  'drop',
  'hostnames',
  'matchLabelKeys',
  'mismatchLabelKeys',
  'nameservers',
  'namespaces',
  'searches',
  'values',
])

/** Lists whose items always have a `value`; that of an environment variable goes when it is empty. */
const VALUED: ReadonlySet<string> = new Set(['httpHeaders', 'sysctls'])

export function tidied(object: JsonObject, inside = ''): JsonObject {
  const kept = Object.entries(object).filter(([name, value]) => !isNothing(name, value) || (name === 'value' && VALUED.has(inside)))
  return Object.fromEntries(kept.map(([name, value]) => [name, tidiedValue(name, value)]))
}

function tidiedValue(name: string, value: Json): Json {
  // A null in a list reads as an item with nothing in it.
  const nothing = TEXT_LISTS.has(name) ? '' : {}
  if (Array.isArray(value)) return value.map((item: Json) => (isObject(item) ? tidied(item, name) : (item ?? nothing)))
  // The entries of a map are no fields.
  return isObject(value) && !MAPS.has(name) ? tidied(value, name) : value
}

function isNothing(name: string, value: Json): boolean {
  if (value === null) return true
  if (value === false) return DROPPED_FLAGS.has(name)
  if (value === 0) return DROPPED_ZEROS.has(name)
  if (value === '') return !KEPT_TEXTS.has(name) && name !== 'name' && name !== 'path'
  if (Array.isArray(value)) return value.length === 0
  return MAPS.has(name) && isObject(value) && Object.keys(value).length === 0
}
