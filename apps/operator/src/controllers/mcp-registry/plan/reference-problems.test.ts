import { normaliseMcpRegistry } from '@thv/resources/kinds/mcp-registry/normalise'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { describe, expect, it } from 'vitest'
import { dueCertificates } from '../../../webhook/webhook-certificates.ts'
import { referenceProblems } from './reference-problems.ts'

const NOW = Date.parse('2026-03-01T10:00:00Z')
const { authority } = dueCertificates(undefined, { hosts: ['idp.example.com'], now: NOW })
const provider = {
  name: 'people',
  issuerUrl: 'https://idp.example.com',
  audience: 'registry',
  caCertRef: { name: 'authorities' },
  clientSecretRef: { name: 'client', key: 'secret' },
}
const spec = {
  registries: [{ name: 'here', managed: {} }],
  authConfig: { mode: 'oauth', oauth: { providers: [provider] } },
} as unknown as MCPRegistry['spec']

function problemsOf(authorities: Record<string, string> | undefined, keys: readonly string[] | undefined, given = spec): string[] {
  const registry = { metadata: { name: 'demo', namespace: 'team' }, spec: given } as MCPRegistry
  return referenceProblems(normaliseMcpRegistry(registry).spec, { configMap: () => authorities, secretKeys: () => keys }, NOW)
}

describe('referenceProblems', () => {
  it('finds nothing in objects that are as they should be, or that are not there', () => {
    expect(problemsOf({ 'ca.crt': authority.certPem }, ['secret'])).toEqual([])
    expect(problemsOf(undefined, undefined)).toEqual([])
  })

  it.each([
    ['a text', 'c4n4ry'],
    ['an empty certificate', '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n'],
    ['half a certificate', authority.certPem.slice(0, 200)],
    ['a private key', authority.keyPem],
  ])('names the ConfigMap whose certificates are %s, and quotes nothing of it', (_, pem) => {
    const [problem, ...others] = problemsOf({ 'ca.crt': pem }, ['secret'])
    expect(problem).toMatch(/^key ca\.crt of ConfigMap authorities is not a CA bundle: ./)
    expect(others).toEqual([])
    expect(problem).not.toContain(pem.slice(30, 60) || pem)
  })

  it('names keys that are missing, but for those that may be', () => {
    expect(problemsOf({}, ['other'])).toEqual(['ConfigMap authorities has no key ca.crt', 'Secret client has no key secret'])
    const optional = { ...provider, caCertRef: { name: 'authorities', key: 'mine.crt', optional: true } }
    const loose = { ...spec, authConfig: { mode: 'oauth', oauth: { providers: [optional] } } } as unknown as MCPRegistry['spec']
    expect(problemsOf({}, ['secret'], loose)).toEqual([])
  })

  it.each(['source', 'registries'])('checks the password of a git repository in spec.%s', (shape) => {
    const git = {
      repository: 'https://git.example.com/catalog.git',
      auth: { username: 'robot', passwordSecretRef: { name: 'git', key: 'token' } },
    }
    const given = (shape === 'source' ? { source: { git } } : { registries: [{ name: 'catalog', git }] }) as unknown as MCPRegistry['spec']
    expect(problemsOf(undefined, ['password'], given)).toEqual(['Secret git has no key token'])
    expect(problemsOf(undefined, ['token'], given)).toEqual([])
  })
})
