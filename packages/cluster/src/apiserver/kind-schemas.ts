import { builtinSchema } from '../schema/builtin/builtin-schema.ts'
import { type CrdVersions, crdSchemas } from '../schema/structural/crd-schemas.ts'
import { anySchema } from './any-schema.ts'
import type { JsonObject, KindSchema } from './kind-schema.ts'
import { apiVersionOf } from './served-kind.ts'

/** Where the schemas of kinds come from. */
export interface KindSchemas {
  builtin(gvk: { group: string; version: string; kind: string }): KindSchema
  /** Those of a definition that has been validated, by version. */
  custom(crd: JsonObject): ReadonlyMap<string, KindSchema>
}

export const kindSchemas: KindSchemas = {
  builtin: (gvk) => builtinSchema(apiVersionOf(gvk), gvk.kind) ?? anySchema,
  custom: (crd) => crdSchemas(crd as unknown as CrdVersions),
}
