import { builtinSchema } from '@thv/kube-schema/builtin/builtin-schema'
import type { JsonObject, KindSchema } from '@thv/kube-schema/kind-schema'
import { type CrdVersions, crdSchemas } from '@thv/kube-schema/structural/crd-schemas'
import { apiVersionOf } from '../objects/served-kind.ts'
import { anySchema } from './any-schema.ts'

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
