import { randomBytes } from 'node:crypto'
import type { PodSpec } from '@thv/kube'
import { withSecurityContexts } from '@thv/kube/objects/pod-security'
import { apiRequest } from '@thv/testkit/cluster/http-request'
import { describeCluster, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { beforeAll, expect, test } from 'vitest'
import { isRefusedAt, podSecurityFindings } from './pod-security.ts'

/* The verdict of the operator on a pod is that of the admission plugin PodSecurity. */

const pod = (spec: object, container: object = {}) => ({ ...spec, containers: [{ name: 'c', image: 'i:1', ...container }] })
const context = (securityContext: object) => pod({}, { securityContext })

const PODS: Readonly<Record<string, object>> = {
  'asks for nothing': pod({}),
  'host network': pod({ hostNetwork: true }),
  'host processes': pod({ hostPID: true }),
  'host IPC': pod({ hostIPC: true }),
  'a folder of the host': pod({ volumes: [{ name: 'v', hostPath: { path: '/srv' } }] }),
  'an NFS folder': pod({ volumes: [{ name: 'v', nfs: { server: 's', path: '/' } }] }),
  'a Secret and a temporary folder': pod({
    volumes: [
      { name: 'v', secret: { secretName: 's' } },
      { name: 'w', emptyDir: {} },
    ],
  }),
  'a port of the host': pod({}, { ports: [{ containerPort: 80, hostPort: 80 }] }),
  'a probe of another host': pod({}, { livenessProbe: { httpGet: { port: 80, host: 'example.com' } } }),
  'a hook to another host': pod({}, { lifecycle: { preStop: { tcpSocket: { port: 80, host: 'example.com' } } } }),
  privileged: context({ privileged: true }),
  'a strong capability': context({ capabilities: { add: ['SYS_ADMIN'] } }),
  'a usual capability': context({ capabilities: { add: ['CHOWN'] } }),
  'low ports': context({ capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } }),
  'capabilities that are kept': context({ capabilities: { drop: ['KILL'] } }),
  'a higher right': context({ allowPrivilegeEscalation: true }),
  'the user root': context({ runAsUser: 0 }),
  'maybe root': context({ runAsNonRoot: false }),
  'no seccomp': context({ seccompProfile: { type: 'Unconfined' } }),
  'no AppArmor': context({ appArmorProfile: { type: 'Unconfined' } }),
  'an SELinux type': context({ seLinuxOptions: { type: 'spc_t' } }),
  'an SELinux user': context({ seLinuxOptions: { user: 'u' } }),
  'a safe SELinux type': context({ seLinuxOptions: { type: 'container_t' } }),
  'a kernel setting': pod({ securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } }),
  'a safe kernel setting': pod({ securityContext: { sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }] } }),
  'no seccomp for the pod': pod({ securityContext: { seccompProfile: { type: 'Unconfined' } } }),
  'an init container': { ...pod({}), initContainers: [{ name: 'i', image: 'i:1', securityContext: { privileged: true } }] },
}

describeCluster('pod security levels', () => {
  const namespaces = new Map<string, string>()
  const post = async (path: string, body: object) => await apiRequest(sharedCluster(), path, { method: 'POST', body })

  beforeAll(async () => {
    for (const level of ['baseline', 'restricted']) {
      const name = `security-${level}-${randomBytes(5).toString('hex')}`
      const labels = { 'pod-security.kubernetes.io/enforce': level }
      expect((await post('/api/v1/namespaces', { metadata: { name, labels } })).status).toBe(201)
      expect((await post(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'mine' } })).status).toBe(201)
      namespaces.set(level, name)
    }
  })

  const cases = (['baseline', 'restricted'] as const).flatMap((level) => Object.keys(PODS).map((title) => [level, title] as const))

  test.each(cases)('%s: %s', async (level, title) => {
    const spec = withSecurityContexts(PODS[title] as unknown as PodSpec, 'kubernetes')
    const isRefused = podSecurityFindings(spec as never).some((finding) => isRefusedAt(level, finding))
    const body = { metadata: { name: 'p' }, spec: { ...spec, serviceAccountName: 'mine' } }
    const path = `/api/v1/namespaces/${namespaces.get(level)}/pods?dryRun=All`
    const { status, text } = await post(path, body)
    expect([201, 403], text).toContain(status)
    if (status === 403) expect(text).toContain('violates PodSecurity')
    expect(isRefused, text).toBe(status === 403)
  })
})
