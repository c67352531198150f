import type { SchemaNode } from '../schema/structural/schema-node.ts'
import { structuralSchema } from '../schema/structural/structural-schema.ts'
import type { KindSchemas } from './kind-registry.ts'
import type { KindSchema } from './kind-schema.ts'

/** Takes everything as it is. */
export const anySchema: KindSchema = {
  prune: (object) => ({ object, unknown: [] }),
  applyDefaults: (object) => object,
  validate: () => [],
  merge: { type: 'untyped' },
}

export const kindSchemas: KindSchemas = {
  builtin: () => anySchema,
  custom: ({ schema }) => structuralSchema(schema as SchemaNode),
}
