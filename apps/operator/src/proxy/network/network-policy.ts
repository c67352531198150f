import type { NetworkPolicy } from '@thv/kube'
import type { Platform } from '@thv/kube/objects/pod-security'
import { serverSelector, workloadLabels } from '../labels.ts'
import { serverNames } from '../names.ts'
import { toCidr } from './address.ts'
import type { PermissionProfile } from './permission-profile.ts'

export interface NetworkPolicyInput {
  readonly name: string
  readonly namespace: string
  readonly transport: string
  readonly mcpPort: number
  readonly profile: PermissionProfile
  /** Where the name server of the cluster is. */
  readonly platform?: Platform
}

type Rule = Readonly<Record<string, unknown>>

/**
 * The NetworkPolicy of a profile for the pods of a server. Only the proxy may connect to them. The network of the cluster
 * must enforce NetworkPolicies, or this does nothing.
 */
export function networkPolicy({
  name,
  namespace,
  transport,
  mcpPort,
  profile,
  platform = 'kubernetes',
}: NetworkPolicyInput): NetworkPolicy {
  const proxy = workloadLabels('MCPServer', name)
  const outgoing = egress(profile, platform)
  const fromProxy = { from: [{ podSelector: { matchLabels: proxy } }], ports: [{ protocol: 'TCP', port: mcpPort }] }
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: serverNames(name).networkPolicy, namespace, labels: proxy },
    spec: {
      podSelector: { matchLabels: serverSelector(name) },
      policyTypes: ['Ingress', 'Egress'],
      // Without rules nothing is allowed. An empty list is not sent: the API server does not keep it, and would see a change each time.
      ...(transport !== 'stdio' && { ingress: [fromProxy] }),
      ...(outgoing.length > 0 && { egress: outgoing }),
    },
  }
}

/**
 * Ports are open to the addresses that are listed, and to all when hosts are named or none is listed. A host without ports is open on
 * all of them if it is an address, and not at all if it is a name.
 */
function egress({ network: { mode, outbound } }: PermissionProfile, platform: Platform): Rule[] {
  if (mode === 'none') return []
  if (outbound.insecure_allow_all) return [{}]
  const { allow_host: hosts, allow_port: numbers } = outbound
  const blocks = hosts.flatMap((host) => {
    const cidr = toCidr(host)
    return cidr === undefined ? [] : [{ ipBlock: { cidr } }]
  })
  const areAllAddresses = hosts.length > 0 && blocks.length === hosts.length
  const to = areAllAddresses || (numbers.length === 0 && blocks.length > 0) ? { to: blocks } : {}
  if (numbers.length === 0) return blocks.length === 0 ? [] : [to]
  return [{ ...to, ports: numbers.flatMap(portRules) }, ...(areAllAddresses || numbers.includes(DNS) ? [] : [TO_DNS[platform]])]
}

const DNS = 53

function portRules(port: number): Rule[] {
  return [{ protocol: 'TCP', port }, ...(port === DNS ? [{ protocol: 'UDP', port }] : [])]
}

/** Without names a port is of little use. Only the name server of the cluster itself; on OpenShift it listens on a port of its own. */
const TO_DNS: Readonly<Record<Platform, Rule>> = {
  kubernetes: {
    to: [{ namespaceSelector: {}, podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } } }],
    ports: [
      { protocol: 'UDP', port: DNS },
      { protocol: 'TCP', port: DNS },
    ],
  },
  openshift: {
    to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'openshift-dns' } } }],
    ports: [
      { protocol: 'UDP', port: 5353 },
      { protocol: 'TCP', port: 5353 },
    ],
  },
}
