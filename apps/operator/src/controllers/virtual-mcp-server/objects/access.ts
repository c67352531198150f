import { normaliseMcpServerEntry } from '@thv/resources/kinds/mcp-server-entry/normalise'
import type { CanonicalVirtualMCPServerSpec } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { accessRules } from '@thv/vmcpconfig/discovery/discovery-rules'
import type { PlannedChild } from '../../../deployment/deployment-plan.ts'
import { workloadLabels } from '../../../proxy/labels.ts'
import { virtualServerNames } from '../../../proxy/names.ts'
import type { Lookup } from '../../../references/lookup.ts'
import { referencesOfExternalAuthConfig } from '../../../references/references.ts'
import type { Place } from './children.ts'
import type { GroupMembers } from './group-members.ts'

interface AccessInput {
  readonly spec: CanonicalVirtualMCPServerSpec
  readonly members: GroupMembers
  readonly lookup: Pick<Lookup, 'externalAuthConfig'>
}

const RBAC_GROUP = 'rbac.authorization.k8s.io'

/** The rights of the pods: their own status and, where they discover backends, the members and what those name. */
export function accessOf({ name, namespace }: Place, { spec, members, lookup }: AccessInput): PlannedChild[] {
  const { account } = virtualServerNames(name)
  const { source } = spec.outgoingAuth
  const metadata = { name: account, namespace, labels: workloadLabels('VirtualMCPServer', name) }
  const apiVersion = `${RBAC_GROUP}/v1`
  const rules = accessRules({ name, source, ...referenced(members, lookup) })
  return [
    { kind: 'Role', object: { apiVersion, kind: 'Role', metadata, rules } },
    {
      kind: 'RoleBinding',
      object: {
        apiVersion,
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name: account },
        subjects: [{ kind: 'ServiceAccount', name: spec.serviceAccount ?? account, namespace }],
      },
    },
  ]
}

/** Secrets and ConfigMaps that the entries name. */
function referenced({ entries }: GroupMembers, lookup: AccessInput['lookup']): { secrets: string[]; configMaps: string[] } {
  const specs = entries.map((entry) => normaliseMcpServerEntry(entry).spec)
  const ofAuth = specs.flatMap(({ externalAuthConfigRef: ref }) => {
    const config = ref && lookup.externalAuthConfig(ref.name)
    return config === undefined ? [] : referencesOfExternalAuthConfig(config).secrets
  })
  const ofHeaders = specs.flatMap(({ headerForward }) =>
    headerForward.addHeadersFromSecret.map(({ valueSecretRef }) => valueSecretRef.name),
  )
  const configMaps = specs.flatMap(({ caBundleRef }) => (caBundleRef ? [caBundleRef.configMapRef.name] : []))
  return { secrets: [...ofAuth, ...ofHeaders], configMaps }
}
