import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type KubectlPair, startKubectlPair } from './testing/kubectl-pair.ts'

const RBAC = 'rbac.authorization.k8s.io/v1'
const WEB = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', labels: { app: 'web' } },
  spec: { ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
}
const SLICE = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: true } }, { addresses: ['192.0.2.2'] }],
  ports: [{ name: 'http', port: 8080 }],
}
const POLICY = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'np' },
  spec: {
    podSelector: { matchLabels: { app: 'web' } },
    ingress: [{ from: [{ namespaceSelector: {} }, { ipBlock: { cidr: '192.0.2.0/24' } }], ports: [{ port: 80 }] }],
    egress: [{}],
  },
}
const ROLE = {
  apiVersion: RBAC,
  kind: 'Role',
  metadata: { name: 'r' },
  rules: [
    { apiGroups: [''], resources: ['pods', 'services'], verbs: ['get', 'list'] },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: ['*'], resourceNames: ['d'] },
  ],
}
const BINDING = {
  apiVersion: RBAC,
  kind: 'RoleBinding',
  metadata: { name: 'rb' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' },
  subjects: [{ kind: 'ServiceAccount', name: 'sa' }],
}
const LEASE = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'l' }, spec: { holderIdentity: 'me' } }
const SECRET = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 's' },
  type: 'kubernetes.io/basic-auth',
  stringData: { username: 'u' },
}
const ACCOUNT = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'sa' }, imagePullSecrets: [{ name: 's' }] }
const EVENT = (namespace: string) => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'web.1' },
  involvedObject: { kind: 'Service', name: 'web', namespace },
  reason: 'Because',
  message: 'It was so.',
  type: 'Warning',
})

/** Each command must do and say the same on both; in this order, as one story. `-f -` takes the object from the right. */
const STORY: readonly (readonly [command: string, input?: object | ((namespace: string) => object)])[] = [
  ['apply -f -', WEB],
  ['apply -f -', WEB],
  ['get svc -o wide'],
  ['get service web -o jsonpath={.spec.type}{.spec.ports}{.spec.ipFamilies}'],
  ['describe svc web'],
  ['create -f -', SLICE],
  ['get endpointslices -o wide'],
  ['describe endpointslice web-1'],
  ['describe svc web'],
  [
    'apply -f -',
    {
      ...WEB,
      spec: {
        ports: [
          { name: 'http', port: 80, targetPort: 8081 },
          { name: 'more', port: 81 },
        ],
      },
    },
  ],
  ['get svc web'],
  ['apply -f -', { ...WEB, spec: { ports: [{ name: 'HTTP', port: 0 }] } }],
  ['apply -f -', { ...WEB, spec: { clusterIP: '192.0.2.1', ports: [{ port: 80 }] } }],
  ['patch svc web -p {"spec":{"selector":{"app":"web"}}}'],
  ['set selector svc web app=other'],
  ['get svc web -o wide'],
  ['expose service web --name=web2 --port=82 --target-port=http --type=NodePort'],
  ['get svc web2 -o wide'],
  ['patch svc web2 -p {"spec":{"type":"ClusterIP"}}'],
  ['get svc -l app=web'],
  ['create -f -', { ...WEB, metadata: { name: 'name' }, spec: { type: 'ExternalName', externalName: 'example.com' } }],
  ['get svc name'],
  ['describe svc name'],
  ['get all'],
  ['apply -f -', POLICY],
  ['get netpol -o wide'],
  ['describe netpol np'],
  ['apply -f -', { ...POLICY, spec: { podSelector: {}, ingress: [{ from: [{}] }] } }],
  ['apply -f -', ROLE],
  ['get role r -o jsonpath={.rules}'],
  ['describe role r'],
  ['apply -f -', { ...ROLE, rules: [{ apiGroups: [''], resources: ['pods'] }] }],
  ['apply -f -', BINDING],
  ['get rolebinding -o wide'],
  ['describe rolebinding rb'],
  ['set subject rolebinding rb --user=u --group=g'],
  ['get rolebinding rb -o wide'],
  ['apply -f -', { ...BINDING, roleRef: { ...BINDING.roleRef, name: 'other' } }],
  ['apply -f -', LEASE],
  ['get lease l'],
  ['patch lease l --type=merge -p {"spec":{"leaseDurationSeconds":0}}'],
  ['apply -f -', SECRET],
  ['get secret s'],
  ['describe secret s'],
  ['apply -f -', { ...SECRET, metadata: { name: 's2' }, stringData: { other: 'x' } }],
  ['apply -f -', ACCOUNT],
  ['get sa sa'],
  ['describe sa sa'],
  ['create -f -', EVENT],
  ['get events'],
  ['get events -o wide'],
  ['events --for service/web'],
  ['delete svc web web2 name'],
  ['get svc'],
]

describeCluster('kubectl on Services, policies and their like', () => {
  let pair: KubectlPair

  beforeAll(async () => {
    pair = await startKubectlPair('kubectl-svc')
  })
  afterAll(async () => {
    await pair[Symbol.asyncDispose]()
    expect(pair.errors).toEqual([])
  })

  it.each(STORY.map(([command, input], index) => ({ command, input, index })))('$index $command', async ({ command, input }) => {
    const { ours, theirs } = await pair.run(command, typeof input === 'function' ? input(pair.namespace) : input)
    expect(ours).toEqual(theirs)
  })
})
