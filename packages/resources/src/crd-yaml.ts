import { stringify } from 'yaml'
import { crdOf } from './schema/crd.ts'
import type { KindDefinition } from './schema/kind-definition.ts'

/** The CRD as YAML. No anchors: both versions share one schema object, which `kubectl` should not have to know. */
export function crdYamlOf(definition: KindDefinition): string {
  return stringify(crdOf(definition), { aliasDuplicateObjects: false, lineWidth: 140 })
}
