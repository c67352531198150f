import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { del, type ParityRow, post, row } from './parity-row.ts'

const good: JsonObject = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
}
const pod = (spec: JsonObject, context: JsonObject = good, more: JsonObject = {}): JsonObject => ({
  metadata: { name: 'p' },
  spec: { serviceAccountName: 'mine', containers: [{ name: 'c', image: 'i:1', securityContext: context, ...more }], ...spec },
})

const PODS: readonly JsonObject[] = [
  pod({}),
  pod({}, {}),
  pod(
    { securityContext: { runAsNonRoot: true, seccompProfile: { type: 'Localhost', localhostProfile: 'x' } } },
    { allowPrivilegeEscalation: true },
  ),
  pod({ hostNetwork: true, hostPID: true, hostIPC: true }, { privileged: true }, { ports: [{ containerPort: 80 }, { containerPort: 81 }] }),
  pod({ volumes: [{ name: 'h', hostPath: { path: '/x' } }, { name: 'n', nfs: { server: 's', path: '/' } }, { name: 'e' }] }),
  pod({}, { ...good, capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE', 'SYS_ADMIN', 'CHOWN'] } }),
  pod(
    {
      securityContext: {
        runAsUser: 0,
        runAsNonRoot: false,
        seccompProfile: { type: 'Unconfined' },
        sysctls: [{ name: 'kernel.msgmax', value: '1' }],
      },
    },
    { ...good, runAsUser: 0, seLinuxOptions: { type: 'spc_t', user: 'u' }, appArmorProfile: { type: 'Unconfined' } },
  ),
  pod({ initContainers: [{ name: 'i', image: 'i:1' }] }, {}, { livenessProbe: { httpGet: { port: 1, host: 'example.com' } } }),
  pod({ restartPolicy: 'Sometimes' }, {}),
]

const leveled = (title: string, labels: JsonObject, name: string): ParityRow => {
  const namespace = `/api/v1/namespaces/{ns}-${name}`
  return row(
    `pod security: ${title}`,
    post('/api/v1/namespaces', { metadata: { name: `{ns}-${name}`, labels } }),
    post(`${namespace}/serviceaccounts`, { metadata: { name: 'mine' } }),
    ...PODS.map((one) => post(`${namespace}/pods?dryRun=All`, one)),
    del(namespace),
  )
}
const ENFORCE = 'pod-security.kubernetes.io/enforce'

/** Namespaces that do not take every pod. */
export const podSecurityRows: readonly ParityRow[] = [
  leveled('restricted', { [ENFORCE]: 'restricted' }, 'restricted'),
  leveled('baseline', { [ENFORCE]: 'baseline', [`${ENFORCE}-version`]: 'v1.34' }, 'baseline'),
  leveled('privileged', { [ENFORCE]: 'privileged' }, 'privileged'),
]
