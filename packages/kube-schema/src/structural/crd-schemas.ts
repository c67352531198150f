import { jsonEqual } from '@thv/kernel/json'
import { forbidden, required } from '../field-problems.ts'
import type { FieldProblem, KindSchema } from '../kind-schema.ts'
import type { SchemaNode } from '../schema-node.ts'
import { boundedTime, TimeExceeded } from '../values/bounded-time.ts'
import type { ScalePaths } from './scale-problems.ts'
import { schemaProblems } from './schema-problems.ts'
import { structuralSchema } from './structural-schema.ts'

/** Defaults are held against patterns and rules, which may be hostile. */
const CHECK_LIMIT_MS = 20_000

/** The part of a CustomResourceDefinition that matters here. */
export interface CrdVersions {
  readonly spec: {
    readonly versions: readonly {
      readonly name: string
      readonly schema?: { readonly openAPIV3Schema?: SchemaNode }
      readonly subresources?: { readonly scale?: ScalePaths }
    }[]
  }
}

/** Problems of the schemas of a CRD; fields as the real server names them. */
export function crdSchemaProblems(crd: CrdVersions): readonly FieldProblem[] {
  try {
    return boundedTime(CHECK_LIMIT_MS, () => problemsOf(crd.spec))
  } catch (error) {
    if (error instanceof TimeExceeded) return [forbidden('spec.versions', 'checking the defaults in the schema takes too long')]
    throw error
  }
}

function problemsOf({ versions }: CrdVersions['spec']): readonly FieldProblem[] {
  const [first] = versions
  // the real server first moves a schema that all versions share to `spec.validation`
  const isShared = first?.schema?.openAPIV3Schema !== undefined && versions.every(({ schema }) => jsonEqual(schema, first.schema))
  if (isShared && first.schema?.openAPIV3Schema) return schemaProblems(first.schema.openAPIV3Schema, 'spec.validation.openAPIV3Schema')
  return versions.flatMap(({ schema }, index) => {
    const field = `spec.versions[${index}].schema.openAPIV3Schema`
    return schema?.openAPIV3Schema ? schemaProblems(schema.openAPIV3Schema, field) : [required(field, 'schemas are required')]
  })
}

/** By version. A schema that several versions share is compiled once. */
export function crdSchemas(crd: CrdVersions): ReadonlyMap<string, KindSchema> {
  const compiled: { key: unknown; schema: KindSchema }[] = []
  const schemas = new Map<string, KindSchema>()
  for (const { name, schema, subresources } of crd.spec.versions) {
    const key = { schema, scale: subresources?.scale }
    const known = compiled.find((candidate) => jsonEqual(candidate.key, key))
    const node = schema?.openAPIV3Schema ?? {}
    const made = known?.schema ?? structuralSchema(node, subresources?.scale ? { scale: subresources.scale } : {})
    if (!known) compiled.push({ key, schema: made })
    schemas.set(name, made)
  }
  return schemas
}
