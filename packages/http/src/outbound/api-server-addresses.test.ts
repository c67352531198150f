import { describe, expect, it } from 'vitest'
import { vetUrl } from './address-policy.ts'
import { apiServerAddresses } from './api-server-addresses.ts'

const inPod = (host: string, port = '443') => ({ KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port })

describe('apiServerAddresses', () => {
  it.each([
    ['nothing outside of a cluster', {}, undefined, []],
    ['the address in a pod', inPod('10.96.0.1'), undefined, ['10.96.0.1']],
    ['an IPv6 address', inPod('fd00::1'), undefined, ['[fd00::1]']],
    ['the host of a kubeconfig', {}, 'https://api.cluster.example:6443', ['api.cluster.example']],
    ['both', inPod('10.96.0.1'), 'https://192.0.2.1:6443', ['10.96.0.1', '192.0.2.1']],
    ['each once', inPod('10.96.0.1'), 'https://10.96.0.1:443', ['10.96.0.1']],
    ['a loopback address with its port', inPod('127.0.0.1', '6443'), 'https://localhost', ['127.0.0.1:6443', 'localhost:443']],
    ['nothing of what is no address', inPod('a b'), 'nonsense', []],
  ])('are %s', (_, env, server, expected) => expect(apiServerAddresses({ env, server })).toEqual(expected))

  it.each([
    ['https://10.96.0.1:6443/api', 'address_blocked'],
    ['http://0x0a600001', 'address_blocked'],
    ['http://[::ffff:10.96.0.1]', 'address_blocked'],
    ['https://api.cluster.example', 'host_blocked'],
    ['https://API.cluster.example.:1', 'host_blocked'],
    ['http://127.0.0.1:6443', 'address_blocked'],
    ['http://127.0.0.1:6444', undefined],
    ['https://mcp.api.cluster.example', undefined],
    ['http://10.96.0.2', undefined],
  ])('%s: %s', (url, problem) => {
    const blockedAddresses = [
      ...apiServerAddresses({ env: inPod('10.96.0.1'), server: 'https://api.cluster.example' }),
      ...apiServerAddresses({ env: inPod('127.0.0.1', '6443') }),
    ]
    const verdict = vetUrl(url, { allowLoopback: true, allowPrivate: true, blockedAddresses })
    expect(verdict.ok ? undefined : verdict.problem).toBe(problem)
  })
})
