import { describe, expect, it } from 'vitest'
import { errorMessage, isThvError, ThvError } from './errors.ts'

describe('ThvError', () => {
  it('carries code, message, cause and details', () => {
    const cause = new Error('socket')
    const details = { status: 404 }
    const e = new ThvError('kube_status', 'not found', { cause, details })
    details.status = 500
    expect(e).toBeInstanceOf(Error)
    expect([e.name, e.code, e.message, e.cause, e.details]).toEqual(['ThvError', 'kube_status', 'not found', cause, { status: 404 }])
    expect(e.stack).toMatch(/^ThvError: not found\n/)
    expect(Object.isFrozen(e.details)).toBe(true)
  })

  it('has no cause unless one is given', () => {
    expect('cause' in new ThvError('usage', 'x')).toBe(false)
    expect(new ThvError('usage', 'x', { cause: undefined })).toHaveProperty('cause', undefined)
    expect(new ThvError('usage', 'x').details).toEqual({})
  })

  it('does not compile with a code that is not registered', () => {
    // @ts-expect-error the registry has no such code
    expect(new ThvError('no_such_code', 'x').code).toBe('no_such_code')
  })

  it('is recognised with and without a code', () => {
    const e = new ThvError('timeout', 'x')
    expect([isThvError(e), isThvError(e, 'timeout'), isThvError(e, 'aborted')]).toEqual([true, true, false])
    expect([isThvError(new Error('x')), isThvError(undefined), isThvError({ code: 'timeout' }, 'timeout')]).toEqual([false, false, false])
  })
})

describe('errorMessage', () => {
  it('joins the chain of causes on one line', () => {
    const e = new ThvError('kube_unreachable', 'list pods', { cause: new Error('connect\n  refused', { cause: 'ECONNREFUSED' }) })
    expect(errorMessage(e)).toBe('list pods: connect refused: ECONNREFUSED')
  })

  it('does not say twice what a wrapper has repeated', () => {
    const inner = new Error('no route')
    expect(errorMessage(new Error(`connect: ${inner.message}`, { cause: inner }))).toBe('connect: no route')
    expect(errorMessage(new Error('no route', { cause: inner }))).toBe('no route')
    expect(errorMessage(new Error('connect (no route), giving up', { cause: inner }))).toBe('connect (no route), giving up')
    expect(errorMessage(new Error('connect', { cause: new Error('connect: no route', { cause: inner }) }))).toBe('connect: no route')
    expect(errorMessage(new Error('nothing', { cause: new Error('no') }))).toBe('nothing: no')
    expect(errorMessage(new Error('a no route b', { cause: new Error('x', { cause: inner }) }))).toBe('a no route b: x: no route')
  })

  it.each(['hunter2', '{"a":hunter2,"b":1}', '[1,2,hunter2 and a long text behind it]', 'hunter2"quoted"', '  hunter2', 'h', '😀hunter2'])(
    'quotes nothing of a document that is not JSON (%s)',
    (document) => {
      const parse = () => {
        try {
          return JSON.parse(document)
        } catch (cause) {
          return new Error('the answer of the token endpoint is unusable', { cause })
        }
      }
      expect(errorMessage(parse())).toBe('the answer of the token endpoint is unusable: Unexpected token in JSON')
    },
  )

  it.each([
    ['connect redis://user:hunter2@cache:6379/0 failed', 'connect redis://[redacted]@cache:6379/0 failed'],
    ['cannot fetch https://hunter2@example.com/?q=a@b', 'cannot fetch https://[redacted]@example.com/?q=a@b'],
    ['https://example.com/@scope/name and mail@example.com', 'https://example.com/@scope/name and mail@example.com'],
  ])('leaves out credentials in an address: %s', (message, text) => {
    expect(errorMessage(new Error('outer', { cause: new Error(message) }))).toBe(`outer: ${text}`)
  })

  it('ends at a cycle', () => {
    const a = new Error('a')
    const b = new Error('b', { cause: a })
    a.cause = b
    expect(errorMessage(a)).toBe('a: b')
    const self = new AggregateError([], 'self')
    self.errors.push(self)
    expect(errorMessage(self)).toBe('self')
  })

  it('shows the members of an AggregateError, each once, and not too many', () => {
    expect(errorMessage(new AggregateError([new Error('x'), new Error('y'), new Error('x')], 'all failed'))).toBe('all failed: [x; y]')
    expect(errorMessage(new AggregateError([], ''))).toBe('AggregateError')
    const many = Array.from({ length: 9 }, (_, i) => new Error(`e${i}`))
    expect(errorMessage(new AggregateError(many))).toBe('[e0; e1; e2; e3; e4; and 4 more]')
  })

  it('falls back to the code, then to the name, of an error without a message', () => {
    expect(errorMessage(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }))).toBe('ECONNREFUSED')
    expect(errorMessage(new TypeError())).toBe('TypeError')
    expect(errorMessage(new Error('', { cause: new Error('why') }))).toBe('why')
  })

  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    ['text', 'text'],
    ['', '(empty)'],
    [42, '42'],
    [7n, '7'],
    [Symbol('s'), 'Symbol(s)'],
    [{ message: 'like an error' }, 'like an error'],
    [{ password: 'hunter2' }, '[object Object]'],
    [['a secret'], '[object Array]'],
    [() => 'a secret', 'a function'],
    [Object.create(null), '[object Object]'],
  ])('takes %s', (thrown, text) => {
    expect(errorMessage(thrown)).toBe(text)
  })

  it('survives values that throw when they are read', () => {
    const getter = new Error('x')
    Object.defineProperty(getter, 'message', { get: () => expect.unreachable() })
    const proxy = new Proxy({}, { has: () => expect.unreachable() })
    expect(errorMessage(getter)).toBe('(an error that cannot be printed)')
    expect(errorMessage(proxy)).toBe('(an error that cannot be printed)')
    expect(errorMessage(new Error('outer', { cause: proxy }))).toBe('outer: (an error that cannot be printed)')
  })

  it('cuts what is huge, deep or wide', () => {
    const huge = errorMessage(new Error('x'.repeat(10_000_000)))
    expect(huge).toBe(`${'x'.repeat(1_999)}…`)
    expect(errorMessage(new Error('x'.repeat(2_000)))).toBe('x'.repeat(2_000))

    let deep: Error = new Error('0')
    for (let i = 1; i < 10_000; i++) deep = new Error(String(i), { cause: deep })
    expect(errorMessage(deep)).toMatch(/^9999: 9998: .*: …$/)

    let looks = 0
    const leaf = {
      get message() {
        looks++
        return 'leaf'
      },
    }
    let wide: object = leaf
    for (let i = 0; i < 10; i++) wide = new AggregateError([wide, wide, leaf], `a${i}`)
    expect(errorMessage(wide).length).toBeLessThanOrEqual(2_000)
    expect(looks).toBeLessThan(200)
  })

  it('does not cut a character in two, and repairs one that came in two', () => {
    const text = errorMessage(new Error(`${'x'.repeat(1_998)}😀😀`))
    expect(text).toBe(`${'x'.repeat(1_998)}…`)
    expect(errorMessage('\ud83d')).toBe('\ufffd')
  })

  it('leaves no control character that could forge a log line or steer a terminal', () => {
    expect(errorMessage(new Error('a\r\nb\u2028c\u0000d\u001b[31m'))).toBe('a b c d [31m')
  })
})
