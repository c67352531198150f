import type { Json, JsonObject } from '../kind-schema.ts'
import { type FieldSet, fromFieldsV1, isEmptySet, toFieldsV1 } from './field-set.ts'
import { isMapValue } from './typed-value.ts'

/** One entry of metadata.managedFields. */
export interface Manager {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string
  readonly time: string | undefined
  readonly fields: FieldSet
}

/** Appliers are the same whatever version they apply in; updaters are one per version. */
export function managerKey({ manager, operation, apiVersion, subresource }: Omit<Manager, 'time' | 'fields'>): string {
  return JSON.stringify([manager, operation, operation === 'Apply' ? '' : apiVersion, subresource])
}

export type Managers = ReadonlyMap<string, Manager>

/** Undefined when an entry cannot be read: the real server then keeps what it had. */
export function managersOf(object: JsonObject | undefined): Managers | undefined {
  const metadata = object?.['metadata']
  const entries = isMapValue(metadata) ? metadata['managedFields'] : undefined
  const managers = new Map<string, Manager>()
  for (const entry of Array.isArray(entries) ? entries : []) {
    const manager = readEntry(entry as Json)
    if (!manager) return undefined
    managers.set(managerKey(manager), manager)
  }
  return managers
}

function readEntry(entry: Json): Manager | undefined {
  if (!isMapValue(entry)) return undefined
  const { manager, operation, apiVersion, subresource, time, fieldsType, fieldsV1 } = entry as Readonly<Record<string, Json | undefined>>
  if (operation !== 'Apply' && operation !== 'Update') return undefined
  if (typeof apiVersion !== 'string' || apiVersion === '' || fieldsType !== 'FieldsV1') return undefined
  return {
    manager: typeof manager === 'string' ? manager : '',
    operation,
    apiVersion,
    subresource: typeof subresource === 'string' ? subresource : '',
    time: typeof time === 'string' ? time : undefined,
    fields: fromFieldsV1(isMapValue(fieldsV1) ? fieldsV1 : {}),
  }
}

/** Oldest first, appliers before updaters, as the real server sorts them. */
export function withManagers(object: JsonObject, managers: Managers): JsonObject {
  const entries = [...managers.values()].filter(({ fields }) => !isEmptySet(fields)).sort(byAge)
  const { managedFields: _old, ...metadata } = (object['metadata'] ?? {}) as Record<string, Json>
  return { ...object, metadata: entries.length > 0 ? { ...metadata, managedFields: entries.map(writeEntry) } : metadata }
}

export function withoutManagers(object: JsonObject): JsonObject {
  return withManagers(object, new Map())
}

function writeEntry({ manager, operation, apiVersion, subresource, time, fields }: Manager): JsonObject {
  return {
    ...(manager !== '' && { manager }),
    operation,
    apiVersion,
    ...(time !== undefined && { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: toFieldsV1(fields),
    ...(subresource !== '' && { subresource }),
  }
}

function byAge(a: Manager, b: Manager): number {
  const seconds = ({ time }: Manager) => (time === undefined ? 0 : Math.floor(Date.parse(time) / 1000))
  return (
    order(a.operation, b.operation) ||
    seconds(a) - seconds(b) ||
    order(a.manager, b.manager) ||
    order(a.apiVersion, b.apiVersion) ||
    order(a.subresource, b.subresource)
  )
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
