import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLogger, type LogFields, type LoggerOptions, parseLogLevel } from './log.ts'
import { createRedactor, scrub } from './redact.ts'

function open(options: LoggerOptions = {}) {
  const lines: string[] = []
  const log = createLogger({
    format: 'json',
    clock: new TestClock(Date.UTC(2026, 0, 2, 3, 4, 5, 6)),
    write: (line) => lines.push(line),
    ...options,
  })
  return { log, lines, parsed: () => lines.map((line) => JSON.parse(line)) }
}

describe('log', () => {
  it('writes one JSON object per line', () => {
    const { log, lines } = open()
    log.info('hello\nworld', { a: 1, b: 'x', c: undefined })
    expect(lines).toEqual(['{"time":"2026-01-02T03:04:05.006Z","level":"info","msg":"hello\\nworld","a":1,"b":"x"}\n'])
  })

  it('leaves out what is below its level', () => {
    const { log, parsed } = open({ level: 'warn' })
    log.debug('1')
    log.info('2')
    log.warn('3')
    log.error('4')
    expect(parsed().map(({ level, msg }) => [level, msg])).toEqual([
      ['warn', '3'],
      ['error', '4'],
    ])
    expect([log.enabled('info'), log.enabled('warn')]).toEqual([false, true])
  })

  it('gives the fields of a parent to its children, which may set their own', () => {
    const { log, parsed } = open({ fields: { app: 'runner' } })
    const child = log.child({ server: 'a', token: 'abc' }).child({ server: 'b' })
    child.warn('x', { n: 1 })
    log.warn('y')
    expect(parsed()).toMatchObject([
      { app: 'runner', server: 'b', token: '[redacted]', n: 1 },
      { app: 'runner', msg: 'y' },
    ])
    expect(parsed()[1]).not.toHaveProperty('server')
  })

  it('lets no field pose as a member of the line', () => {
    const { log, parsed } = open()
    log.info('real', { msg: 'fake', level: 'error', time: 'never' })
    expect(parsed()).toEqual([
      { time: '2026-01-02T03:04:05.006Z', level: 'info', msg: 'real', msg_: 'fake', level_: 'error', time_: 'never' },
    ])
  })

  it('writes errors as one line with their causes', () => {
    const { log, parsed } = open()
    log.error('failed', { error: new ThvError('timeout', 'no answer', { cause: new Error('socket\nclosed') }) })
    expect(parsed()[0].error).toBe('no answer: socket closed')
  })

  it('never throws, and counts what it could not write', () => {
    const { log } = open({
      write() {
        throw new Error('disk full')
      },
    })
    log.info('x')
    log.child({}).info('y')
    expect(log.failures).toBe(2)
  })

  it('writes whatever it is given as one line of JSON', () => {
    const { log, lines } = open()
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.dictionary(fc.string(), fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true })),
        (message, fields) => {
          lines.length = 0
          log.info(message, fields)
          expect(lines).toHaveLength(1)
          expect(lines[0]?.indexOf('\n')).toBe((lines[0]?.length ?? 0) - 1)
          JSON.parse(lines[0] ?? '')
        },
      ),
    )
    expect(log.failures).toBe(0)
  })

  it('survives cycles, getters that throw and huge values', () => {
    const { log, parsed } = open()
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    const hostile = {
      get x(): never {
        throw new Error('no')
      },
    }
    log.info('x', {
      cycle,
      hostile,
      huge: 'x'.repeat(100_000),
      many: Array.from({ length: 1_000 }, (_, i) => i),
      bytes: Buffer.alloc(99),
      big: 10n,
      nan: Number.NaN,
    })
    const [line] = parsed()
    expect(JSON.stringify(line).length).toBeLessThan(20_000)
    expect(line).toMatchObject({ hostile: '(cannot be printed)', bytes: '(99 bytes)', big: '10', nan: 'NaN' })
    expect(line.many).toHaveLength(51)
  })
})

describe('redaction', () => {
  it.each([
    'authorization',
    'Authorization',
    'Proxy-Authorization',
    'cookie',
    'Set-Cookie',
    'password',
    'db_password',
    'clientSecret',
    'client_secret',
    'x-api-key',
    'apiKey',
    'access_token',
    'refreshToken',
    'privateKey',
    'credentials',
  ])('hides the field %s at any depth', (key) => {
    const { log, lines } = open()
    log.info('x', { [key]: 'hunter2', nested: [{ [key]: { deep: 'hunter2' } }] })
    expect(lines[0]).not.toContain('hunter2')
    expect(lines[0]).toContain('[redacted]')
  })

  it.each(['tokens', 'tokenCount', 'secretName', 'keyId', 'monkey', 'author'])('shows the field %s', (key) => {
    expect(createRedactor()('shown', key)).toBe('shown')
  })

  it('lets an object say itself what it shows, and still hides secrets in it', () => {
    const value = { secretly: 'x', toJSON: () => ({ path: '/a', token: 'hunter2' }) }
    expect(createRedactor()(value)).toEqual({ path: '/a', token: '[redacted]' })
  })

  it('hides further fields when told', () => {
    const { log, lines } = open({ redactKeys: ['Mcp-Session-Id'] })
    log.info('x', { mcpSessionId: 'hunter2' })
    expect(lines[0]).not.toContain('hunter2')
  })

  it.each([
    ['Authorization: Bearer abc123XYZ._-', 'Authorization: Bearer [redacted]'],
    ['bearer 0123456789', 'bearer [redacted]'],
    ['Basic dXNlcjpwYXNz', 'Basic [redacted]'],
    ['got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln here', 'got [redacted] here'],
    ['https://user:pa$$@example.com/x', 'https://[redacted]@example.com/x'],
    ['redis://:pass@r:6379', 'redis://[redacted]@r:6379'],
    ['GET /cb?code=abc&state=1', 'GET /cb?code=[redacted]&state=1'],
    ['/x?a=1&access_token=abc#f', '/x?a=1&access_token=[redacted]#f'],
    ['-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----', '[redacted]'],
    ['-----BEGIN PRIVATE KEY-----\nMHc', '[redacted]'],
  ])('hides the credential in %j', (text, expected) => {
    expect(scrub(text)).toBe(expected)
  })

  it.each([
    'Bearer token missing',
    'basic authentication failed.',
    'mail to a@b.example',
    'http://example.com/@scope/pkg',
    '?page=2&limit=10',
    'eyJ',
  ])('shows %j', (text) => expect(scrub(text)).toBe(text))

  it('applies to messages and errors', () => {
    const { log, lines } = open()
    log.info('sent Bearer abc123XYZ', { error: new Error('Basic dXNlcjpwYXNz was refused') })
    expect(lines[0]).not.toMatch(/abc123XYZ|dXNlcjpwYXNz/)
  })
})

describe('the format for people', () => {
  it('is short and coloured', () => {
    const { log, lines } = open({ format: 'human' })
    log.warn('careful', { server: 'a/b', why: 'two words', n: [1] })
    const plain = stripVTControlCharacters(lines[0] ?? '')
    expect(plain).toBe('03:04:05.006 WARN  careful server=a/b why="two words" n=[1]\n')
    expect(lines[0]).toContain('\x1b[33m')
  })

  it('lets nothing from outside into the terminal', () => {
    const { log, lines } = open({ format: 'human' })
    const fields: LogFields = { 'k\x1b[31m': '\x1b]0;title\x07', b: '\u009b2J', c: '\u202eevil', d: 'a\r\nb' }
    log.info('\x1b[2J\x07\nfake line', fields)
    const ours = ['\x1b[0m', '\x1b[2m', '\x1b[32m'].reduce((text, code) => text.replaceAll(code, ''), lines[0] ?? '')
    expect(ours.slice(0, -1)).not.toMatch(/[\p{Cc}\u202e]/u)
    expect(ours).toContain('\\u000afake line')
  })
})

describe('standard error', () => {
  it('gets JSON when it is no terminal, and a reader that goes away does no harm', () => {
    const script = `import { createLogger } from ${JSON.stringify(fileURLToPath(new URL('./log.ts', import.meta.url)))}
const log = createLogger()
log.info('one')
process.stderr.destroy()
for (let i = 0; i < 3; i++) log.info('lost')
await new Promise((resolve) => setTimeout(resolve, 20))
console.log('alive')`
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
    })
    expect(output).toBe('alive\n')
  })

  it('knows the names of the levels', () => {
    expect(['debug', 'INFO', ' warning ', 'error', 'trace', 'constructor', ''].map(parseLogLevel)).toEqual([
      'debug',
      'info',
      'warn',
      'error',
      undefined,
      undefined,
      undefined,
    ])
  })
})
