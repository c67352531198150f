import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { resolveRemoteUrl, vetRemoteUrl } from './remote-url.ts'
import { blockersOf, contributionOf, runnerReads } from './testing/snapshot.ts'

const OPEN = { denyPrivate: false, allowPrivate: false, allowLoopback: false, blockedAddresses: ['10.96.0.1'], insecureAllowHTTP: false }

describe('vetRemoteUrl, a table of addresses and names', () => {
  it.each([
    ['https://mcp.example.com/mcp?x=1', OPEN, undefined],
    ['https://10.0.0.1/mcp', OPEN, undefined],
    ['https://mcp.team.svc.cluster.local', OPEN, undefined],
    ['https://10.0.0.1', { ...OPEN, denyPrivate: true }, /private address.*allowPrivateEndpoint/],
    ['https://10.0.0.1', { ...OPEN, denyPrivate: true, allowPrivate: true }, undefined],
    ['https://mcp.team.svc.cluster.local', { ...OPEN, denyPrivate: true }, /inside the cluster.*allowPrivateEndpoint/],
    [
      'https://mcp.team.svc.corp.internal',
      { ...OPEN, denyPrivate: true, clusterDomain: 'corp.internal' },
      /inside the cluster.*allowPrivateEndpoint/,
    ],
    ['https://mcp.team.svc.corp.internal', { ...OPEN, clusterDomain: 'corp.internal' }, undefined],
    ['https://127.0.0.1:1', OPEN, /127\.0\.0\.1 is a loopback address: start the operator with --allow-loopback-remotes/],
    ['https://0x7f.1', OPEN, /loopback address/],
    ['https://localhost', { ...OPEN, allowLoopback: true }, undefined],
    ['https://169.254.169.254', { ...OPEN, allowPrivate: true, allowLoopback: true }, /link-local/],
    ['https://metadata.google.internal', OPEN, /metadata service/],
    ['https://kubernetes.default.svc', OPEN, /Kubernetes API server/],
    ['https://10.96.0.1/api/v1/secrets', { ...OPEN, allowPrivate: true }, /10\.96\.0\.1 is an address of the Kubernetes API server/],
    ['https://10.96.0.2/mcp', OPEN, undefined],
    ['https://0.0.0.0', OPEN, /unspecified/],
    ['http://mcp.example.com', OPEN, /must begin with https.*insecureAllowHTTP/],
    ['http://mcp.example.com', { ...OPEN, insecureAllowHTTP: true }, undefined],
    ['ftp://mcp.example.com', OPEN, /scheme ftp/],
    ['https://me:hunter2@mcp.example.com', OPEN, /must not carry a user name/],
    ['https://mcp.example.com/\nx', OPEN, /white space/],
    ['https://mcp.example.com/#x', OPEN, /fragment/],
    ['', OPEN, /not a URL/],
  ])('%s by %j: %s [004-027]', (url, rules, problem) => {
    const found = vetRemoteUrl(url, rules)
    if (problem === undefined) expect(found).toBeUndefined()
    else expect(found).toMatch(problem)
    expect(found ?? '').not.toContain('hunter2')
  })
})

describe('resolveRemoteUrl', () => {
  it('writes down the URL and which addresses it may lead to', () => {
    const { runConfig } = contributionOf(
      resolveRemoteUrl({
        remoteUrl: 'http://10.0.0.1/mcp',
        allowPrivateEndpoint: true,
        remotes: { denyPrivate: true, allowLoopback: false, blockedAddresses: [] },
      }),
    )
    expect(runConfig).toEqual({
      remote_url: 'http://10.0.0.1/mcp',
      remote_policy: { deny_private: true, allow_private: true, allow_loopback: false },
    })
  })

  it('is blocked by a URL that must not be called', () => {
    expect(
      blockersOf(
        resolveRemoteUrl({
          remoteUrl: 'https://169.254.169.254/',
          allowPrivateEndpoint: true,
          remotes: { denyPrivate: false, allowLoopback: true, blockedAddresses: [] },
        }),
      ),
    ).toEqual([
      {
        condition: 'ConfigurationValid',
        reason: 'RemoteURLInvalid',
        message: 'spec.remoteUrl cannot be used: 169.254.169.254 is a link-local address, which is never a remote server',
      },
    ])
  })

  it('whatever the URL: it is blocked, or the runner reads it', () => {
    const scheme = fc.constantFrom('https://', 'http://', 'HTTPS:', 'ftp://', '')
    const host = fc.constantFrom(
      'mcp.example.com',
      '10.0.0.1',
      '[::1]',
      'localhost',
      'me@mcp.example.com',
      '127.1',
      'ex ample',
      'bücher.example',
      '',
    )
    const urls = fc.tuple(scheme, host, fc.string()).map((parts) => parts.join(''))
    fc.assert(
      fc.property(urls, (remoteUrl) => {
        const resolved = resolveRemoteUrl({
          remoteUrl,
          allowPrivateEndpoint: false,
          remotes: { denyPrivate: false, allowLoopback: false, blockedAddresses: [] },
        })
        if (resolved.ok) expect(runnerReads(resolved.contribution).remote_url).toBe(remoteUrl)
        else expect(resolved.blockers).toHaveLength(1)
      }),
    )
  })
})
