import type { Service } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { LOCAL_ADDRESS_ANNOTATION, urlAtAddress } from './proxy-url.ts'

const URL_IN_CLUSTER = 'http://mcp-fetch-proxy.demo.svc.cluster.local:8080/sse#fetch'

function service(spec: Service['spec'], annotations: Record<string, string> = {}): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name: 's', annotations }, spec } as Service
}

describe('urlAtAddress', () => {
  it.each([
    ['the address of the Service', service({ clusterIP: '127.9.0.7' }), 'http://127.9.0.7:8080/sse#fetch'],
    ['an IPv6 address', service({ clusterIP: 'fd00::7' }), 'http://[fd00::7]:8080/sse#fetch'],
    [
      'where the node says that it is',
      service({ clusterIP: '127.9.0.7' }, { [LOCAL_ADDRESS_ANNOTATION]: '127.0.0.1:4123' }),
      'http://127.0.0.1:4123/sse#fetch',
    ],
    [
      'the address when the annotation is none',
      service({ clusterIP: '127.9.0.7' }, { [LOCAL_ADDRESS_ANNOTATION]: 'evil.example/x:1' }),
      'http://127.9.0.7:8080/sse#fetch',
    ],
    ['nothing before the Service has an address', service({}), undefined],
    ['nothing for a headless one', service({ clusterIP: 'None' }), undefined],
    ['nothing without a Service', undefined, undefined],
  ])('gives %s', (_, live, expected) => {
    expect(urlAtAddress(URL_IN_CLUSTER, live)).toBe(expected)
  })
})
