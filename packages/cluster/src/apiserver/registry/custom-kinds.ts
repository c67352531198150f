import type { Json, JsonObject, KindSchema } from '@thv/kube-schema/kind-schema'
import { customRules } from '../objects/kind-rules.ts'
import { at, type Column, isObject, type ScalePaths, type ServedKind, textAt } from '../objects/served-kind.ts'
import { anySchema } from './any-schema.ts'
import { age, name as nameColumn } from './builtin-columns.ts'
import { ageSince } from './human-duration.ts'
import { compilePrinterPath } from './printer-path.ts'

/** The kinds that a definition of this revision stands for, one per served version. `schemas` are those of its versions. */
export function customServedKinds(crd: JsonObject, schemas: ReadonlyMap<string, KindSchema>, revision: number): ServedKind[] {
  const names = at(crd, 'spec', 'names')
  const [group, kind, plural] = [textAt(crd, 'spec', 'group'), textAt(names, 'kind'), textAt(names, 'plural')]
  const storage = textAt(
    versionsOf(crd).find((version) => version['storage'] === true),
    'name',
  )
  const stored = { since: revision, version: storage, schema: schemas.get(storage) ?? anySchema }
  return versionsOf(crd)
    .filter((version) => version['served'] === true)
    .map((version): ServedKind => {
      const schema = at(version, 'schema', 'openAPIV3Schema')
      const scale = scalePaths(at(version, 'subresources', 'scale'))
      return {
        group,
        version: textAt(version, 'name'),
        kind,
        plural,
        listKind: textAt(names, 'listKind') || `${kind}List`,
        singular: textAt(names, 'singular') || kind.toLowerCase(),
        shortNames: texts(at(names, 'shortNames')),
        categories: texts(at(names, 'categories')),
        namespaced: textAt(crd, 'spec', 'scope') === 'Namespaced',
        type: `${plural}.${group}`,
        schema: schemas.get(textAt(version, 'name')) ?? anySchema,
        openApi: isObject(schema) ? schema : {},
        columns: printerColumns(at(version, 'additionalPrinterColumns')),
        status: isObject(at(version, 'subresources', 'status')),
        ...(scale ? { scale } : {}),
        rules: customRules,
        custom: true,
        stored,
      }
    })
}

export function versionsOf(crd: JsonObject): JsonObject[] {
  const versions = at(crd, 'spec', 'versions')
  return Array.isArray(versions) ? (versions as Json[]).filter(isObject) : []
}

function scalePaths(scale: Json | undefined): ScalePaths | undefined {
  if (!isObject(scale)) return undefined
  const path = (name: string) => textAt(scale, name).split('.').filter(Boolean)
  const selector = path('labelSelectorPath')
  return { spec: path('specReplicasPath'), status: path('statusReplicasPath'), ...(selector.length > 0 ? { selector } : {}) }
}

function printerColumns(value: Json | undefined): Column[] {
  const rows = Array.isArray(value) ? (value as Json[]).filter(isObject) : []
  if (rows.length === 0) return [nameColumn, age]
  return [nameColumn, ...rows.map(printerColumn)]
}

function printerColumn(row: JsonObject): Column {
  const find = compilePrinterPath(textAt(row, 'jsonPath'))
  const type = textAt(row, 'type')
  const priority = row['priority']
  return {
    name: textAt(row, 'name'),
    type,
    format: textAt(row, 'format'),
    description: textAt(row, 'description'),
    priority: typeof priority === 'number' ? priority : 0,
    cell: (object, now) => cellOf(find?.(object) ?? [], type, now),
  }
}

/** As the real server: a value of another type than the column's is left out, a date becomes an age. */
function cellOf(values: readonly Json[], type: string, now: number): Json {
  const [value] = values
  if (value === undefined) return null
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      return typeof value === 'string' ? ageSince(value, now) : null
    default:
      return typeof value === 'string' ? value : JSON.stringify(value)
  }
}

function texts(value: Json | undefined): string[] {
  return Array.isArray(value) ? (value as Json[]).filter((one): one is string => typeof one === 'string') : []
}
