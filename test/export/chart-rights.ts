import { readFileSync } from 'node:fs'
import { clusterRoleBindings, clusterRoles, type KubeClient, type KubeObject, roleBindings, roles, serviceAccounts } from '@thv/kube'
import type { TestServer } from '@thv/testkit/test-server'
import { parseAllDocuments } from 'yaml'

/*
 * The rights that the operator's chart gives where an administrator allows all namespaces: those of the operator, and those that it may
 * hand on. They are read from the chart's golden file, which the tests of the chart keep equal to it.
 */

const GOLDEN = new URL('../deploy/goldens/operator-everything.golden.yaml', import.meta.url)
const TYPES = {
  ServiceAccount: serviceAccounts,
  ClusterRole: clusterRoles,
  ClusterRoleBinding: clusterRoleBindings,
  Role: roles,
  RoleBinding: roleBindings,
}

export interface Rule {
  readonly apiGroups: string[]
  readonly resources: string[]
  readonly verbs: string[]
}

export interface ChartRights {
  readonly namespace: string
  readonly token: string
  /** The role for registry servers. */
  readonly exportRole: string
  readonly exportRules: readonly Rule[]
}

export async function applyChartRights(server: TestServer, client: KubeClient): Promise<ChartRights> {
  const objects = parseAllDocuments(readFileSync(GOLDEN, 'utf8')).flatMap((document) => (document.toJS() as KubeObject | null) ?? [])
  for (const object of objects)
    if (object.kind !== undefined && object.kind in TYPES)
      await client.apply(TYPES[object.kind as keyof typeof TYPES] as never, object as never, { fieldManager: 'test', force: true })
  const account = objects.find(({ kind }) => kind === 'ServiceAccount')?.metadata
  const role = objects.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name.endsWith('-registry-export'))
  if (account === undefined || role === undefined) throw new Error(`${GOLDEN.pathname} has no account, or no role for exports`)
  const { name, namespace = '' } = account
  const token = await server.serviceAccountToken({ namespace, name })
  return { namespace, token, exportRole: role.metadata.name, exportRules: (role as KubeObject & { rules: Rule[] }).rules }
}

/** The rules without one verb on one resource. */
export function without(rules: readonly Rule[], resource: string, verb: string): Rule[] {
  const parts = rules.flatMap(({ apiGroups, resources, verbs }) => [
    { apiGroups, resources: resources.filter((each) => each !== resource), verbs },
    { apiGroups, resources: resources.filter((each) => each === resource), verbs: verbs.filter((each) => each !== verb) },
  ])
  return parts.filter(({ resources }) => resources.length > 0)
}
