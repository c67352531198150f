import { describe, expect, it } from 'vitest'
import { type AddressPolicy, type AddressProblem, vetAddress, vetHost, vetUrl } from './address-policy.ts'

const problemOf = (url: string, policy: AddressPolicy = {}): AddressProblem | 'ok' => {
  const verdict = vetUrl(url, policy)
  return verdict.ok ? 'ok' : verdict.problem
}

const loopback: AddressPolicy = { allowLoopback: true }
const denied: AddressPolicy = { denyPrivate: true }
const excepted: AddressPolicy = { denyPrivate: true, allowPrivate: true }
const everything: AddressPolicy = { allowLoopback: true, allowPrivate: true }

describe('vetUrl', () => {
  it.each([
    'https://mcp.example.com/mcp',
    'http://example.com',
    'https://example.com:8443/a?b=c#d',
    'https://EXAMPLE.com.',
    'https://8.8.8.8',
    'https://[2606:4700:4700::1111]:443/',
    'http://10.0.0.1',
    'http://172.16.5.4:8080',
    'http://192.168.1.1',
    'http://[fd12:3456::1]',
    'http://foo.bar.svc',
    'http://foo.bar.svc.cluster.local',
    'http://notlocalhost',
    'http://localhost.example.com',
    'http://kubernetes.example.com',
    'http://kubernetes.defaults.svc',
    'http://my-kubernetes.default',
    'http://metadata.example.com',
  ])('takes %s', (url) => expect(problemOf(url)).toBe('ok'))

  it.each([
    '',
    'mcp.example.com',
    '//example.com',
    'http://',
    'http:///x',
    'https://exa mple.com',
    'http://[::1',
    'http://[fe80::1%25eth0]',
    'http://[fe80::1%eth0]',
    'http://256.256.256.256',
    'http://0x1ffffffff',
    'http://a%00b',
  ])('finds that %j is no URL', (url) => {
    // The parser skips surplus slashes: "http:///x" is host x.
    expect(problemOf(url)).toBe(url === 'http:///x' ? 'ok' : 'url_invalid')
  })

  it.each(['ftp://example.com', 'file:///etc/passwd', 'ws://example.com', 'javascript:alert(1)', 'data:text/plain,x', 'unix:/run/x.sock'])(
    'refuses the scheme of %s',
    (url) => expect(problemOf(url)).toBe('scheme_not_allowed'),
  )

  it.each(['http://user@example.com', 'http://user:pass@example.com', 'https://:pass@example.com', 'http://example.com@8.8.8.8'])(
    'refuses credentials in %s',
    (url) => expect(problemOf(url)).toBe('credentials_in_url'),
  )

  describe.each([
    ['the default', {}],
    ['everything that can be allowed', everything],
  ])('with %s', (_name, policy) => {
    it.each([
      'http://0.0.0.0',
      'http://0',
      'http://0.1.2.3:8080',
      'http://0x0.0x0',
      'http://[::]',
      'http://[0:0:0:0:0:0:0:0]:80',
      'http://169.254.169.254/latest/meta-data/',
      'http://169.254.170.2',
      'http://2852039166',
      'http://0xa9fea9fe',
      'http://0xA9.0xFE.0xA9.0xFE',
      'http://0251.0376.0251.0376',
      'http://169.254.43518',
      'http://169.16689662',
      'http://０ｘａ９fea9fe',
      'http://169。254。169。254',
      'http://169.254.169.254.',
      'http://[::ffff:169.254.169.254]',
      'http://[::ffff:a9fe:a9fe]',
      'http://[0:0:0:0:0:ffff:a9fe:a9fe]',
      'http://[::a9fe:a9fe]',
      'http://[64:ff9b::169.254.169.254]',
      'http://[64:ff9b:1::a9fe:a9fe]',
      'http://[2002:a9fe:a9fe::]',
      'http://[fe80::1]',
      'http://[febf::1]',
      'http://[fd00:ec2::254]',
      'http://[fd00:0ec2:0::0254]',
      'http://100.100.100.200',
      'http://168.63.129.16',
      'http://224.0.0.1',
      'http://255.255.255.255',
      'http://[ff02::1]',
    ])('always refuses the address of %s', (url) => expect(problemOf(url, policy)).toBe('address_blocked'))

    it.each([
      'http://metadata.google.internal/computeMetadata/v1/',
      'http://METADATA.google.internal.',
      'http://x.metadata.google.internal',
      'http://metadata.goog',
      'http://metadata',
      'http://instance-data/latest',
      'http://instance-data.ec2.internal',
      'http://metadata.tencentyun.com',
      'https://kubernetes',
      'https://kubernetes.default',
      'https://kubernetes.default.svc',
      'https://Kubernetes.Default.svc.:443',
      'https://kubernetes.default.svc.cluster.local',
      'https://kubernetes.default.svc.corp.example',
      'https://x.kubernetes.default.svc',
    ])('always refuses the name of %s', (url) => expect(problemOf(url, policy)).toBe('host_blocked'))
  })

  it.each([
    'http://localhost',
    'http://LOCALHOST:8080',
    'http://localhost.',
    'http://a.localhost',
    'http://127.0.0.1',
    'http://127.1',
    'http://127.255.0.1',
    'http://2130706433',
    'http://017700000001',
    'http://0x7f.1',
    'http://①②⑦.0.0.1',
    'http://[::1]',
    'http://[0:0:0:0:0:0:0:1]',
    'http://[::ffff:127.0.0.1]',
    'http://[::ffff:7f00:1]',
    'http://[64:ff9b::127.0.0.1]',
  ])('refuses this machine as %s unless it is allowed', (url) => {
    expect(problemOf(url)).toBe('loopback_blocked')
    expect(problemOf(url, { allowPrivate: true })).toBe('loopback_blocked')
    expect(problemOf(url, loopback)).toBe('ok')
    expect(problemOf(url, { ...loopback, denyPrivate: true })).toBe('ok')
  })

  it.each([
    'http://10.0.0.1',
    'http://10.1',
    'http://172.31.255.255',
    'http://192.168.0.1',
    'http://100.64.0.1',
    'http://198.18.0.1',
    'http://[fc00::1]',
    'http://[fd12::1]',
    'http://[::ffff:10.0.0.1]',
    'http://[64:ff9b::c0a8:1]',
    'http://foo.bar.svc.cluster.local',
    'http://cluster.local.',
  ])('takes the private %s unless it is denied', (url) => {
    expect(problemOf(url)).toBe('ok')
    expect(problemOf(url, denied)).toBe('private_blocked')
    expect(problemOf(url, excepted)).toBe('ok')
  })

  it('takes blocked addresses of the configuration in any spelling', () => {
    const policy = { blockedAddresses: ['10.96.0.1', 'fd00::1'] }
    expect(problemOf('http://10.96.0.1', policy)).toBe('address_blocked')
    expect(problemOf('http://[::ffff:10.96.0.1]', policy)).toBe('address_blocked')
    expect(problemOf('http://[fd00:0::0:1]', policy)).toBe('address_blocked')
    expect(problemOf('http://10.96.0.2', policy)).toBe('ok')
  })

  it('looks only at the form without a policy', () => {
    expect(vetUrl('http://169.254.169.254', undefined).ok).toBe(true)
    expect(vetUrl('http://a@b', undefined)).toMatchObject({ problem: 'credentials_in_url' })
  })

  it('says what is wrong in words', () => {
    expect(vetUrl('http://169.254.169.254', {})).toEqual({
      ok: false,
      problem: 'address_blocked',
      message: '169.254.169.254 is a link-local address, which is never a remote server',
    })
  })

  it('does not quote a password', () => {
    expect(JSON.stringify(vetUrl('http://user:hunter2@example.com', {}))).not.toContain('hunter2')
  })
})

describe('vetAddress and vetHost', () => {
  it('take what a resolver returns', () => {
    expect(vetAddress('8.8.8.8', {}).ok).toBe(true)
    expect(vetAddress('fe80::1%eth0', everything)).toMatchObject({ problem: 'address_blocked' })
    expect(vetAddress('nonsense', everything)).toMatchObject({ problem: 'address_blocked' })
    expect(vetHost('', everything)).toMatchObject({ problem: 'url_invalid' })
    expect(vetHost('::1', {})).toMatchObject({ problem: 'loopback_blocked' })
  })
})
