import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAuthority } from '../authority.ts'
import { createHostGuard, type HostProblem } from './host-guard.ts'

describe('parseAuthority', () => {
  it.each([
    ['localhost', 'localhost', ''],
    ['LOCALHOST:8080', 'localhost', '8080'],
    ['localhost.', 'localhost', ''],
    ['127.0.0.1:1', '127.0.0.1', '1'],
    ['a-b.example.com:65535', 'a-b.example.com', '65535'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example', ''],
    ['a_b', 'a_b', ''],
    ['example.com:', 'example.com', ''],
    ['[::1]', '[::1]', ''],
    ['[::1]:80', '[::1]', '80'],
    ['[0:0:0:0:0:0:0:1]:80', '[::1]', '80'],
    ['[::FFFF:127.0.0.1]', '[::ffff:7f00:1]', ''],
  ])('reads %s', (text, host, port) => expect(parseAuthority(text)).toEqual({ host, port }))

  it.each([
    '',
    ':80',
    '.',
    '..',
    'a..b',
    '-a',
    'a b',
    ' a',
    'a ',
    'a/b',
    'a@b',
    'user:pass@localhost',
    'localhost@evil.com',
    'a:b',
    'a:80:90',
    'a:65536',
    'a:-1',
    'a:+80',
    'a:8 0',
    'a#b',
    'a?b',
    'a%20b',
    'a\\b',
    'a,b',
    '::1',
    '[::1',
    '::1]',
    '[]',
    '[]:80',
    '[fe80::1%25eth0]',
    '[fe80::1%eth0]',
    '[::1]x',
    '[localhost]',
    '[::g]',
    'ｌocalhost',
    'localhost\0',
    'localhost\n',
    'a'.repeat(254),
    'https://a',
  ])('refuses %j', (text) => expect(parseAuthority(text)).toBeUndefined())

  it.each(['a.1', '1', '127.1', '0x7f.0.0.1', '1.2.3.4.5', '256.1.1.1', 'a.0x1'])(
    'rejects %s, which ends in a number and is no address',
    (text) => {
      expect(parseAuthority(text)).toBeUndefined()
      expect(parseAuthority(`${text}:80`)).toBeUndefined()
    },
  )

  it('never takes more than a host and a port out of a text', () => {
    const textOf = (letters: string) => fc.string({ unit: fc.constantFrom(...letters) })
    fc.assert(
      fc.property(fc.oneof(textOf('ab1.:'), textOf('a1.:-_[]@/%#? \\\n\0é')), (text) => {
        const parsed = parseAuthority(text)
        const url = parsed && new URL(`http://${parsed.host}${parsed.port && `:${parsed.port}`}/`)
        expect(url?.pathname ?? '/').toBe('/')
      }),
    )
  })
})

type Row = [host: string | undefined, origin: string | undefined, problem: HostProblem | undefined]

function table(name: string, options: Parameters<typeof createHostGuard>[0], rows: readonly Row[]): void {
  describe(name, () => {
    it.each(rows)('Host %j, Origin %j: %j', (host, origin, problem) => {
      const check = createHostGuard(options)
      expect(check({ host, origin })).toBe(problem)
      expect(check({ host, origin })).toBe(problem) // the same when remembered
    })
  })
}

table('bound to loopback', { boundHost: '127.0.0.1' }, [
  ['localhost', undefined, undefined],
  ['localhost:8080', undefined, undefined],
  ['LocalHost.:8080', undefined, undefined],
  ['127.0.0.1:9', undefined, undefined],
  ['[::1]:9', undefined, undefined],
  ['[0:0::1]:9', undefined, undefined],
  ['127.0.0.2', undefined, undefined],
  ['127.0.0.1', 'http://127.0.0.2', 'origin_not_allowed'],
  ['127.0.0.2', 'http://127.0.0.2:3000', undefined],
  ['evil.example.com', undefined, 'host_not_allowed'],
  ['localhost.evil.com', undefined, 'host_not_allowed'],
  ['evil-localhost', undefined, 'host_not_allowed'],
  ['127.0.0.1.nip.io', undefined, 'host_not_allowed'],
  ['2130706433', undefined, 'host_invalid'],
  ['0x7f000001', undefined, 'host_invalid'],
  ['0.0.0.0', undefined, 'host_not_allowed'],
  ['[::ffff:127.0.0.1]', undefined, 'host_not_allowed'],
  [undefined, undefined, 'host_missing'],
  ['', undefined, 'host_missing'],
  ['localhost@evil.com', undefined, 'host_invalid'],
  ['user@localhost', undefined, 'host_invalid'],
  ['localhost, evil.com', undefined, 'host_invalid'],
  ['localhost:8080', 'http://localhost:3000', undefined],
  ['localhost:8080', 'HTTP://LOCALHOST:3000', undefined],
  ['localhost:8080', 'http://127.0.0.1', undefined],
  ['127.0.0.1', 'https://[::1]:1', undefined],
  ['localhost', 'http://evil.example.com', 'origin_not_allowed'],
  ['evil.example.com', 'http://evil.example.com', 'host_not_allowed'],
  ['localhost', 'http://localhost.evil.com', 'origin_not_allowed'],
  ['localhost', 'null', 'origin_not_allowed'],
  ['localhost', '', 'origin_invalid'],
  ['localhost', 'localhost', 'origin_invalid'],
  ['localhost', 'http://localhost/', 'origin_invalid'],
  ['localhost', 'http://localhost@evil.com', 'origin_invalid'],
  ['localhost', 'http://evil.com#@localhost', 'origin_invalid'],
  ['localhost', 'http://localhost, http://evil.com', 'origin_invalid'],
  ['localhost', 'http://localhost\\@evil.com', 'origin_invalid'],
  ['localhost', 'file://', 'origin_invalid'],
])

table('bound to another loopback address', { boundHost: '127.0.0.7' }, [
  ['127.0.0.7:80', undefined, undefined],
  ['localhost', undefined, undefined],
  ['127.0.0.7.example', undefined, 'host_not_allowed'],
])

table('bound to the IPv6 loopback address', { boundHost: '::1' }, [
  ['[::1]:80', undefined, undefined],
  ['evil.example.com', undefined, 'host_not_allowed'],
])

table('bound to loopback, with names of its own', { boundHost: '127.0.0.7', ownHosts: ['MCP.example.com'] }, [
  ['127.0.0.7:80', undefined, undefined],
  ['localhost', undefined, undefined],
  ['mcp.example.com', undefined, undefined],
  ['mcp.example.com', 'https://mcp.example.com', undefined],
  ['mcp.example.com', 'https://app.example.com', 'origin_not_allowed'],
  ['x.mcp.example.com', undefined, 'host_not_allowed'],
  ['evil.example.com', 'http://evil.example.com', 'host_not_allowed'],
])

table('bound to every address, with names of its own', { boundHost: '0.0.0.0', ownHosts: ['mcp.example.com'] }, [
  ['mcp.example.com', undefined, undefined],
  ['localhost:8080', undefined, undefined],
  ['evil.example.com', 'http://evil.example.com', 'host_not_allowed'],
  ['api.example', 'http://localhost:3000', 'host_not_allowed'],
  ['mcp.example.com', 'http://localhost:3000', 'origin_not_allowed'],
])

table('bound to every address', { boundHost: '0.0.0.0' }, [
  ['anything.example', undefined, undefined],
  ['10.0.0.1:80', undefined, undefined],
  [undefined, undefined, 'host_missing'],
  ['a b', undefined, 'host_invalid'],
  ['api.example:8443', 'https://api.example', undefined],
  ['api.example', 'https://app.example', 'origin_not_allowed'],
  ['api.example', 'http://localhost:3000', 'origin_not_allowed'],
])

table(
  'with hosts and origins given',
  {
    boundHost: '127.0.0.1',
    allowedHosts: ['MCP.example.com.', '[::1]'],
    allowedOrigins: ['https://app.example.com', 'http://localhost:*', 'http://dev.example:8080', 'vscode-webview://abc'],
  },
  [
    ['mcp.example.com:8080', undefined, undefined],
    ['[0::1]', undefined, undefined],
    ['localhost', undefined, 'host_not_allowed'],
    ['x.mcp.example.com', undefined, 'host_not_allowed'],
    ['mcp.example.com', 'https://app.example.com', undefined],
    ['mcp.example.com', 'https://app.example.com:443', undefined],
    ['mcp.example.com', 'https://app.example.com:0443', undefined],
    ['mcp.example.com', 'https://app.example.com:444', 'origin_not_allowed'],
    ['mcp.example.com', 'http://app.example.com', 'origin_not_allowed'],
    ['mcp.example.com', 'http://localhost:5173', undefined],
    ['mcp.example.com', 'http://localhost', undefined],
    ['mcp.example.com', 'https://localhost:5173', 'origin_not_allowed'],
    ['mcp.example.com', 'http://dev.example:8080', undefined],
    ['mcp.example.com', 'http://dev.example', 'origin_not_allowed'],
    ['mcp.example.com', 'https://mcp.example.com', 'origin_not_allowed'],
    ['mcp.example.com', 'vscode-webview://abc', undefined],
    ['mcp.example.com', 'null', 'origin_not_allowed'],
  ],
)

table('with every origin', { boundHost: '0.0.0.0', allowedOrigins: ['*'] }, [
  ['a', 'http://b', undefined],
  ['a', 'null', undefined],
])

table('with sandboxed pages', { boundHost: '0.0.0.0', allowedOrigins: ['null'] }, [
  ['a', 'null', undefined],
  ['a', 'http://a', 'origin_not_allowed'],
])

describe('createHostGuard', () => {
  it('forgets nothing it has not checked', () => {
    const check = createHostGuard({ boundHost: '127.0.0.1' })
    expect(check({ host: 'localhost', origin: 'http://localhost' })).toBeUndefined()
    expect(check({ host: 'localhost', origin: 'http://evil.com' })).toBe('origin_not_allowed')
    expect(check({ host: 'evil.com', origin: 'http://localhost' })).toBe('host_not_allowed')
    expect(check({ host: 'localhost', origin: 'http://localhost' })).toBeUndefined()
  })

  it('takes no lists', () => {
    const check = createHostGuard({ boundHost: '0.0.0.0', allowedOrigins: ['*'] })
    expect(check({ host: ['a', 'b'] })).toBe('host_invalid')
    expect(check({ host: 'a', origin: ['http://a', 'http://b'] })).toBe('origin_invalid')
  })

  it.each([
    [{ allowedHosts: ['a:80'] }, 'a:80'],
    [{ allowedHosts: ['https://a'] }, 'https://a'],
    [{ allowedHosts: ['*'] }, '*'],
    [{ allowedOrigins: ['a.example'] }, 'a.example'],
    [{ allowedOrigins: ['https://a/'] }, 'https://a/'],
  ])('refuses the entry in %j', (options, entry) => {
    expect(() => createHostGuard({ boundHost: '::1', ...options })).toThrow(`"${entry}"`)
  })
})
