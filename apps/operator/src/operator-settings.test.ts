import { describe, expect, test } from 'vitest'
import { type OperatorFlags, operatorSettings } from './operator-settings.ts'

const flags: OperatorFlags = {
  metricsBindAddress: ':8080',
  healthProbeBindAddress: '127.0.0.1:8081',
  webhookBindAddress: '0',
  leaderElect: true,
  leaseDuration: 15_000,
  denyPrivateRemotes: false,
  allowLoopbackRemotes: false,
}
const here = { openshift: false }

describe('operatorSettings', () => {
  test('the defaults', () => {
    expect(operatorSettings(flags, {}, here)).toMatchInlineSnapshot(`
      {
        "clusterDomain": "cluster.local",
        "defaultImagePullSecrets": [],
        "defaultRedis": undefined,
        "healthAddress": {
          "host": "127.0.0.1",
          "port": 8081,
        },
        "leaderElection": true,
        "leaseDurationMs": 15000,
        "leaseName": "toolhive-operator-leader-election",
        "metricsAddress": {
          "host": "0.0.0.0",
          "port": 8080,
        },
        "operatorAccount": "toolhive-operator",
        "packageImages": {
          "npx": "docker.io/library/node:24-alpine",
          "uvx": "ghcr.io/astral-sh/uv:python3.13-alpine",
        },
        "platform": "kubernetes",
        "podName": "thv-operator",
        "podNamespace": "default",
        "podSecurity": "privileged",
        "proxyHost": "0.0.0.0",
        "registryExport": {
          "clusterRole": undefined,
          "namespaces": [],
        },
        "registryImage": "toolhive-ts:0.1.0",
        "remotes": {
          "allowLoopback": false,
          "blockedAddresses": [],
          "denyPrivate": false,
        },
        "runnerImage": "toolhive-ts:0.1.0",
        "serviceUrls": "dns",
        "vmcpImage": "toolhive-ts:0.1.0",
        "watchNamespaces": undefined,
        "webhook": undefined,
      }
    `)
  })

  test('the API server, as the process knows it, is no remote server', () => {
    const env = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }
    const detected = { openshift: false, server: 'https://api.example:6443' }
    expect(operatorSettings(flags, env, detected).remotes.blockedAddresses).toEqual(['10.96.0.1', 'api.example'])
  })

  test('namespaces that registries may export', () => {
    const of = (namespaces: string, role = '') =>
      operatorSettings(flags, { TOOLHIVE_REGISTRY_EXPORT_NAMESPACES: namespaces, TOOLHIVE_REGISTRY_EXPORT_CLUSTER_ROLE: role }, here)
        .registryExport
    expect(of('a, b,a')).toEqual({ namespaces: ['a', 'b'], clusterRole: undefined })
    expect(of('a,*', 'reader')).toEqual({ namespaces: 'all', clusterRole: 'reader' })
    expect(() => of('*')).toThrow('needs TOOLHIVE_REGISTRY_EXPORT_CLUSTER_ROLE')
    expect(() => of('A')).toThrow('TOOLHIVE_REGISTRY_EXPORT_NAMESPACES: "A" is not the name of a namespace')
  })

  test('the pod security level is one of the standard, privileged without one', () => {
    expect(operatorSettings(flags, { TOOLHIVE_POD_SECURITY: 'baseline' }, here).podSecurity).toBe('baseline')
    expect(() => operatorSettings(flags, { TOOLHIVE_POD_SECURITY: 'strict' }, here)).toThrow('TOOLHIVE_POD_SECURITY: "strict" is none of')
  })

  test('URLs are made of names, or of addresses where it is said', () => {
    expect(operatorSettings(flags, { TOOLHIVE_SERVICE_URLS: 'address' }, here).serviceUrls).toBe('address')
    expect(() => operatorSettings(flags, { TOOLHIVE_SERVICE_URLS: 'ip' }, here)).toThrow('TOOLHIVE_SERVICE_URLS: "ip" is neither')
  })

  test('packages are run by images of the user, or by the nodes themselves', () => {
    const env = { TOOLHIVE_NPX_IMAGE: 'my/node:1', TOOLHIVE_UVX_IMAGE: 'my/uv:1' }
    expect(operatorSettings(flags, env, here).packageImages).toEqual({ npx: 'my/node:1', uvx: 'my/uv:1' })
    expect(operatorSettings(flags, { TOOLHIVE_PACKAGE_IMAGES: 'native' }, here).packageImages).toBe('native')
    expect(() => operatorSettings(flags, { TOOLHIVE_PACKAGE_IMAGES: 'yes' }, here)).toThrow('TOOLHIVE_PACKAGE_IMAGES: "yes" is not native')
  })

  test('lists are split, trimmed and made unique', () => {
    const env = { WATCH_NAMESPACE: ' a, b ,a,', TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS: 'x,,y' }
    expect(operatorSettings(flags, env, here)).toMatchObject({ watchNamespaces: ['a', 'b'], defaultImagePullSecrets: ['x', 'y'] })
  })

  test('the default Redis, with and without its password', () => {
    expect(operatorSettings(flags, { TOOLHIVE_DEFAULT_REDIS_ADDR: 'r:6379' }, here).defaultRedis).toEqual({ address: 'r:6379' })
    const env = { TOOLHIVE_DEFAULT_REDIS_ADDR: 'r:6379', TOOLHIVE_DEFAULT_REDIS_SECRET_NAME: 's' }
    expect(operatorSettings(flags, env, here).defaultRedis).toEqual({
      address: 'r:6379',
      passwordRef: { name: 's', key: 'redis-password' },
    })
  })

  test('OpenShift is what is said, and else what is found', () => {
    expect(operatorSettings(flags, {}, { openshift: true }).platform).toBe('openshift')
    expect(operatorSettings(flags, { OPERATOR_OPENSHIFT: 'false' }, { openshift: true }).platform).toBe('kubernetes')
    expect(operatorSettings(flags, { OPERATOR_OPENSHIFT: 'true' }, here).platform).toBe('openshift')
  })

  test('an address may be left out, or be of IPv6', () => {
    const settings = operatorSettings({ ...flags, metricsBindAddress: '0', healthProbeBindAddress: '[::1]:9' }, {}, here)
    expect(settings).toMatchObject({ metricsAddress: undefined, healthAddress: { host: '::1', port: 9 } })
  })

  test.each([
    [{ metricsBindAddress: '8080' }, {}, '--metrics-bind-address: "8080" is not HOST:PORT, :PORT or 0'],
    [{ metricsBindAddress: ':70000' }, {}, '--metrics-bind-address'],
    [{}, { WATCH_NAMESPACE: 'team-a,Team_B' }, 'WATCH_NAMESPACE: "Team_B" is not the name of a namespace'],
  ])('refuses %j %j', (wrong, env, message) => {
    expect(() => operatorSettings({ ...flags, ...wrong }, env, here)).toThrow(message)
  })
})
