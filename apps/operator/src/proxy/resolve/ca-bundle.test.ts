import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { describe, expect, it } from 'vitest'
import { parseCaBundle, resolveRemoteCaBundle } from './ca-bundle.ts'
import { blockersOf, contributionOf, snapshot } from './testing/snapshot.ts'

const { certPem: pem, keyPem: key } = createCertificate({ commonName: 'corp', ca: true })
const { certPem: old } = createCertificate({ commonName: 'old', ca: true, notBefore: new Date(0), notAfter: new Date(86_400_000) })

describe('parseCaBundle', () => {
  it('counts certificates and warns of those that have run out', () => {
    expect(parseCaBundle(`# root\n${pem}${old}`)).toEqual({
      certificates: 2,
      warnings: ['the certificate of CN=old has expired: replace it'],
    })
    expect(parseCaBundle(old, 0)).toEqual({ certificates: 1, warnings: [] })
  })

  it.each([
    ['nothing', '', /^holds no certificate/],
    ['a text', 'hunter2', /^holds no certificate/],
    ['a private key', pem + key, /^entry 2 \(line \d+\) is a private key/],
    ['half a certificate', pem.slice(0, 200), /^entry 1 \(line 1\) has no matching END line/],
    ['a broken certificate', pem.replace(/\n.{20}/, '\nhunter2hunter2hunter'), /^entry 1 \(line 1\) cannot be parsed/],
  ])('refuses %s', (_, text, problem) => {
    const verdict = parseCaBundle(text)
    expect(verdict).toEqual({ certificates: 0, problem: expect.stringMatching(problem), warnings: [] })
    expect(verdict.problem).not.toContain('hunter2')
  })
})

describe('resolveRemoteCaBundle', () => {
  const REMOTE = { remote_url: 'https://mcp.example.com' }
  const resolve = (data: Record<string, string> | undefined, optional = false) =>
    resolveRemoteCaBundle({
      caBundleRef: { configMapRef: { name: 'corp-ca', key: 'root.pem', optional } },
      lookup: snapshot({ configMaps: data ? { 'corp-ca': data } : {} }),
    })

  it('mounts the bundle and tells the runner where', () => {
    expect(contributionOf(resolve({ 'root.pem': pem + old }), REMOTE)).toEqual({
      runConfig: { remote_ca_bundle_path: '/etc/toolhive/remote-ca/root.pem' },
      env: [{ name: 'THV_REMOTE_CA_HASH', value: expect.stringMatching(/^[\w-]{43}$/) }],
      volumes: [{ name: 'remote-ca', configMap: { name: 'corp-ca', items: [{ key: 'root.pem', path: 'root.pem' }] } }],
      volumeMounts: [{ name: 'remote-ca', mountPath: '/etc/toolhive/remote-ca', readOnly: true }],
      conditions: [
        {
          type: 'CABundleRefValidated',
          status: 'True',
          reason: 'CABundleRefValid',
          message:
            'spec.caBundleRef: key root.pem of ConfigMap corp-ca holds 2 certificates; the certificate of CN=old has expired: replace it',
        },
      ],
    })
  })

  it('adds nothing when none is named, and no file when it may be missing', () => {
    expect(contributionOf(resolveRemoteCaBundle({ caBundleRef: undefined, lookup: snapshot() }))).toEqual({})
    expect(contributionOf(resolve(undefined, true))).toEqual({ conditions: [expect.objectContaining({ status: 'True' })] })
  })

  it.each([
    ['no ConfigMap', undefined, 'CABundleRefNotFound'],
    ['no such key', { other: pem }, 'CABundleRefNotFound'],
    ['what is no bundle', { 'root.pem': 'x' }, 'CABundleRefInvalid'],
  ])('is blocked by %s', (_, data, reason) => {
    expect(blockersOf(resolve(data))).toEqual([
      { condition: 'CABundleRefValidated', reason, message: expect.stringContaining('ConfigMap corp-ca') },
    ])
  })

  it('is blocked by a broken one even if it may be missing', () => {
    expect(blockersOf(resolve({ 'root.pem': 'x' }, true))).toMatchObject([{ reason: 'CABundleRefInvalid' }])
  })
})
