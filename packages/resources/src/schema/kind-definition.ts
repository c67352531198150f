import type { KubeObject, ResourceType } from '@thv/kube/objects/types'
import type { Static, TSchema } from 'typebox'
import type { CelRule } from './cel.ts'

export const API_GROUP = 'toolhive.stacklok.dev'
export const STORAGE_VERSION = 'v1beta1'
export const SERVED_VERSIONS = ['v1beta1', 'v1alpha1'] as const

export interface PrinterColumn {
  name: string
  type: 'string' | 'integer' | 'date' | 'boolean'
  jsonPath: string
  description: string
  /** 0: always shown; above: only with `-o wide`. */
  priority?: number
}

/** One custom resource: everything else (types, CRD, reference page, `ResourceType`) is derived from it. */
export interface KindDefinition<Spec extends TSchema = TSchema, Status extends TSchema = TSchema> {
  kind: string
  plural: string
  singular: string
  shortNames: readonly string[]
  description: string
  spec: Spec
  specRequired: boolean
  status: Status
  /** Rules on the whole object; the only place that sees `metadata.name`. */
  rules?: readonly CelRule[]
  columns: readonly PrinterColumn[]
  /** Serves `/scale` (for `kubectl scale` and autoscalers) from spec.replicas, status.replicas and status.selector. */
  scale?: boolean
  /** Only the stored version has descriptions: with those of the other one the CRD would outgrow what `kubectl apply` can keep. */
  describedOnce?: boolean
}

export type ObjectOf<D extends KindDefinition> = KubeObject & { spec: Static<D['spec']>; status?: Static<D['status']> }

export function resourceTypeOf<D extends KindDefinition>(definition: D): ResourceType<ObjectOf<D>> {
  return { group: API_GROUP, version: STORAGE_VERSION, kind: definition.kind, plural: definition.plural, namespaced: true }
}

export const AGE_COLUMN: PrinterColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since the object was created.',
}

export function reasonColumn(name: string, conditionType: string): PrinterColumn {
  return {
    name,
    type: 'string',
    jsonPath: `.status.conditions[?(@.type=='${conditionType}')].reason`,
    description: `Reason of the condition ${conditionType}.`,
  }
}

export function conditionColumn(name: string, conditionType: string): PrinterColumn {
  return {
    name,
    type: 'string',
    jsonPath: `.status.conditions[?(@.type=='${conditionType}')].status`,
    description: `Status of the condition ${conditionType}.`,
  }
}

/** Kinds that create Services or StatefulSets: longer or other names fail only later, at the pod. */
export const WORKLOAD_NAME_RULES: readonly CelRule[] = [
  {
    rule: "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 46",
    message:
      'metadata.name must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ and have at most 46 characters, because Services and pods are named after it',
  },
]
