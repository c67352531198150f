import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { servedObject } from '../objects/object-encoder.ts'
import type { ServedKind } from '../objects/served-kind.ts'
import { badRequest } from '../objects/status-error.ts'
import { partialObject } from './response-form.ts'

/** Part of its object that a row carries. */
export type IncludeObject = 'None' | 'Metadata' | 'Object'

export interface TableOptions {
  readonly include: IncludeObject
  readonly now: number
  /** Later events of a watch leave the definitions out. */
  readonly headless?: boolean
  readonly metadata?: JsonObject
}

/** The form in which kubectl asks for what it prints. Bodies are in their stored form. */
export function tableOf(kind: ServedKind, bodies: readonly JsonObject[], options: TableOptions): JsonObject {
  const columnDefinitions = kind.columns.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format,
    description,
    priority,
  }))
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: options.metadata ?? {},
    columnDefinitions: options.headless ? null : columnDefinitions,
    rows: bodies.map((body) => ({
      cells: kind.columns.map((column) => column.cell(body, options.now)),
      ...rowObject(kind, body, options.include),
    })),
  }
}

export function includeObject(query: URLSearchParams): IncludeObject {
  const value = query.get('includeObject') ?? ''
  if (value === '') return 'Metadata'
  if (value === 'None' || value === 'Metadata' || value === 'Object') return value
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
  )
}

function rowObject(kind: ServedKind, body: JsonObject, include: IncludeObject): { object?: Json } {
  if (include === 'Object') return { object: servedObject(kind, body) }
  if (include === 'None') return {}
  return { object: partialObject(body) }
}
