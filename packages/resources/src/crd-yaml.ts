import { stringify } from 'yaml'
import { crdOf } from './schema/crd.ts'
import type { KindDefinition } from './schema/kind-definition.ts'

/**
 * The CRD as YAML. No anchors: both versions share one schema object, which kubectl should not have to know. Quoted for YAML 1.1,
 * because kubectl reads a bare `on` as true, even as the name of a field.
 */
export function crdYamlOf(definition: KindDefinition): string {
  return stringify(crdOf(definition), { aliasDuplicateObjects: false, lineWidth: 140, version: '1.1' })
}
