import { readFile } from 'node:fs/promises'
import { clusterRoleBindings, clusterRoles, type KubeClient, type PolicyRule, roleBindings, roles, serviceAccounts } from '@thv/kube'
import { parseAllDocuments } from 'yaml'

/*
 * The account that the chart makes, with exactly its rights. The rules are read from the plain manifests, which are generated from the
 * chart, so that a right which the chart forgets fails a test here.
 */

const MANIFESTS = new URL('../../../../deploy/manifests/operator.yaml', import.meta.url)

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly rules?: PolicyRule[]
}

/** Returns a token of the account. With `watched` its rights hold in those namespaces only, as in the chart's namespaced mode. */
export async function operatorAccount(
  admin: KubeClient,
  { namespace, watched }: { namespace: string; watched: readonly string[] | undefined },
): Promise<string> {
  const name = 'toolhive-operator'
  const manifests = parseAllDocuments(await readFile(MANIFESTS, 'utf8')).map((document) => document.toJS() as Manifest | null)
  const rules = manifests.flatMap((manifest) => (manifest?.kind === 'ClusterRole' ? (manifest.rules ?? []) : []))
  const own = manifests.flatMap((manifest) => (manifest?.kind === 'Role' ? (manifest.rules ?? []) : []))
  if (rules.length === 0) throw new Error(`${MANIFESTS.pathname} holds no ClusterRole of the operator`)

  const apply = { fieldManager: 'test', force: true }
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  await admin.apply(serviceAccounts, { metadata: { name, namespace } }, apply)
  const bind = async (into: string, bound: PolicyRule[], role: string) => {
    await admin.apply(roles, { metadata: { name: role, namespace: into }, rules: bound }, apply)
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role }
    await admin.apply(roleBindings, { metadata: { name: role, namespace: into }, roleRef, subjects }, apply)
  }
  await bind(namespace, own, `${name}-own`)
  if (watched !== undefined) {
    for (const target of watched) await bind(target, rules, `${name}-manager`)
  } else {
    const role = `${name}-${namespace}`
    await admin.apply(clusterRoles, { metadata: { name: role }, rules }, apply)
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role }
    await admin.apply(clusterRoleBindings, { metadata: { name: role }, roleRef, subjects }, apply)
  }
  const response = await admin.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } },
  })
  return (response.json() as { status: { token: string } }).status.token
}
