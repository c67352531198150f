import { describe, expect, it } from 'vitest'
import { combineRawHeaders, connectionTokens, countHeader, HOP_BY_HOP, headerText, isHeaderValue, isToken } from './header-map.ts'

describe('header map', () => {
  it('pins the hop-by-hop headers', () => {
    expect([...HOP_BY_HOP].sort()).toEqual(
      'connection http2-settings keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade'.split(
        ' ',
      ),
    )
  })

  it.each(['x', 'X-Api-Key', "!#$%&'*+.^_`|~9"])('%s is a token', (text) => expect(isToken(text)).toBe(true))
  it.each(['', 'a b', 'a:b', 'a\r', 'é', 'a/b', '"a"', 'a\n'])('%j is no token', (text) => expect(isToken(text)).toBe(false))
  it.each(['', 'a b', 'a\tb', 'é', '"q"'])('%j is a value', (text) => expect(isHeaderValue(text)).toBe(true))
  it.each(['a\r\nb: c', 'a\nb', '\0', 'a\x7f', '€', ' a', 'a '])('%j is no value', (text) => expect(isHeaderValue(text)).toBe(false))

  it('reads which headers belong to the connection', () => {
    expect(connectionTokens(undefined)).toBeUndefined()
    expect(connectionTokens('keep-alive')).toBeUndefined()
    expect(connectionTokens('Keep-Alive,  X-Secret ')).toEqual(new Set(['keep-alive', 'x-secret']))
    expect(connectionTokens(['close', 'x-a'])).toEqual(new Set(['close', 'x-a']))
  })

  it('counts by name whatever its case', () => {
    expect(countHeader(['Host', 'a', 'HOST', 'b', 'Hosts', 'c', 'X', 'host'], 'host')).toBe(2)
  })

  it('combines repeated headers', () => {
    expect({ ...combineRawHeaders(['A', '1', 'a', '2', 'Set-Cookie', 'x=1', 'set-cookie', 'y=2', '__proto__', 'z']) }).toEqual({
      a: '1, 2',
      'set-cookie': ['x=1', 'y=2'],
      ['__proto__']: 'z',
    })
  })

  it('takes the first of several', () => {
    expect([headerText(undefined), headerText('a'), headerText(['b', 'c'])]).toEqual([undefined, 'a', 'b'])
  })
})
