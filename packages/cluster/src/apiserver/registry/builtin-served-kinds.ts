import type { KindSchema } from '@thv/kube-schema/kind-schema'
import { configMapRules, secretRules } from '../kinds/config-data/data-rules.ts'
import { controllerRevisionRules } from '../kinds/controller-revision/controller-revision-rules.ts'
import { crdRules } from '../kinds/custom-resource-definition/crd-rules.ts'
import { eventFromCore, eventToCore } from '../kinds/event/event-conversion.ts'
import { eventRules, groupedEventRules } from '../kinds/event/event-rules.ts'
import { leaseRules } from '../kinds/lease/lease-rules.ts'
import { networkPolicyRules } from '../kinds/network-policy/network-policy-rules.ts'
import { nodeRules } from '../kinds/node/node-rules.ts'
import { podRules } from '../kinds/pod/pod-rules.ts'
import { podTemplateRules } from '../kinds/pod-template/pod-template-rules.ts'
import { clusterRoleBindingRules, clusterRoleRules, roleBindingRules, roleRules } from '../kinds/rbac/rbac-rules.ts'
import { endpointSliceRules } from '../kinds/service/endpoint-slice-rules.ts'
import { serviceRules } from '../kinds/service/service-rules.ts'
import { deploymentRules } from '../kinds/workload/deployment-rules.ts'
import { replicaSetRules } from '../kinds/workload/replica-set-rules.ts'
import { replicationControllerRules } from '../kinds/workload/replication-controller-rules.ts'
import { statefulSetRules } from '../kinds/workload/stateful-set-rules.ts'
import { namespaceRules, plainRules, serviceAccountRules } from '../objects/kind-rules.ts'
import type { KindRules, ServedKind } from '../objects/served-kind.ts'
import { builtinColumns } from './builtin-columns.ts'

interface Row {
  readonly group?: string
  readonly kind: string
  readonly plural: string
  readonly short?: readonly string[]
  readonly categories?: readonly string[]
  readonly clusterWide?: boolean
  readonly rules?: KindRules
  readonly status?: boolean
  readonly scale?: boolean
  /** Stored together with another group's kind. */
  readonly type?: string
  readonly conversion?: ServedKind['conversion']
}

const RBAC = 'rbac.authorization.k8s.io'

const ROWS: readonly Row[] = [
  { kind: 'Namespace', plural: 'namespaces', short: ['ns'], clusterWide: true, status: true, rules: namespaceRules },
  { kind: 'Node', plural: 'nodes', short: ['no'], clusterWide: true, status: true, rules: nodeRules },
  { kind: 'Pod', plural: 'pods', short: ['po'], categories: ['all'], status: true, rules: podRules },
  { kind: 'Service', plural: 'services', short: ['svc'], categories: ['all'], status: true, rules: serviceRules },
  { kind: 'ConfigMap', plural: 'configmaps', short: ['cm'], rules: configMapRules },
  { kind: 'Secret', plural: 'secrets', rules: secretRules },
  {
    kind: 'ServiceAccount',
    plural: 'serviceaccounts',
    short: ['sa'],
    rules: serviceAccountRules,
  },
  { kind: 'PodTemplate', plural: 'podtemplates', rules: podTemplateRules },
  {
    kind: 'ReplicationController',
    plural: 'replicationcontrollers',
    short: ['rc'],
    categories: ['all'],
    status: true,
    scale: true,
    rules: replicationControllerRules,
  },
  { kind: 'Event', plural: 'events', short: ['ev'], rules: eventRules },
  {
    group: 'events.k8s.io',
    kind: 'Event',
    plural: 'events',
    short: ['ev'],
    rules: groupedEventRules,
    type: 'events',
    conversion: { toStored: eventToCore, fromStored: eventFromCore },
  },
  {
    group: 'apps',
    kind: 'Deployment',
    plural: 'deployments',
    short: ['deploy'],
    categories: ['all'],
    status: true,
    scale: true,
    rules: deploymentRules,
  },
  {
    group: 'apps',
    kind: 'ReplicaSet',
    plural: 'replicasets',
    short: ['rs'],
    categories: ['all'],
    status: true,
    scale: true,
    rules: replicaSetRules,
  },
  {
    group: 'apps',
    kind: 'StatefulSet',
    plural: 'statefulsets',
    short: ['sts'],
    categories: ['all'],
    status: true,
    scale: true,
    rules: statefulSetRules,
  },
  { group: 'apps', kind: 'ControllerRevision', plural: 'controllerrevisions', rules: controllerRevisionRules },
  { group: RBAC, kind: 'Role', plural: 'roles', rules: roleRules },
  { group: RBAC, kind: 'RoleBinding', plural: 'rolebindings', rules: roleBindingRules },
  { group: RBAC, kind: 'ClusterRole', plural: 'clusterroles', clusterWide: true, rules: clusterRoleRules },
  { group: RBAC, kind: 'ClusterRoleBinding', plural: 'clusterrolebindings', clusterWide: true, rules: clusterRoleBindingRules },
  {
    group: 'coordination.k8s.io',
    kind: 'Lease',
    plural: 'leases',
    rules: leaseRules,
  },
  {
    group: 'networking.k8s.io',
    kind: 'NetworkPolicy',
    plural: 'networkpolicies',
    short: ['netpol'],
    rules: networkPolicyRules,
  },
  {
    group: 'discovery.k8s.io',
    kind: 'EndpointSlice',
    plural: 'endpointslices',
    rules: endpointSliceRules,
  },
  {
    group: 'apiextensions.k8s.io',
    kind: 'CustomResourceDefinition',
    plural: 'customresourcedefinitions',
    short: ['crd', 'crds'],
    categories: ['api-extensions'],
    clusterWide: true,
    status: true,
    rules: crdRules,
  },
]

/** The kinds that are always there. `schemaOf` gives each its schema. */
export function builtinServedKinds(schemaOf: (gvk: { group: string; version: string; kind: string }) => KindSchema): ServedKind[] {
  return ROWS.map((row): ServedKind => {
    const { group = '', kind, plural } = row
    return {
      group,
      version: 'v1',
      kind,
      plural,
      listKind: `${kind}List`,
      singular: kind.toLowerCase(),
      shortNames: row.short ?? [],
      categories: row.categories ?? [],
      namespaced: row.clusterWide !== true,
      type: row.type ?? (group === '' ? plural : `${plural}.${group}`),
      schema: schemaOf({ group, version: 'v1', kind }),
      openApi: {},
      columns: builtinColumns(kind),
      status: row.status ?? false,
      ...(row.scale ? { scale: { spec: ['spec', 'replicas'], status: ['status', 'replicas'] } } : {}),
      rules: row.rules ?? plainRules(),
      custom: false,
      ...(row.conversion ? { conversion: row.conversion } : {}),
    }
  })
}
