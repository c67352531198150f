import { reject } from '@thv/mcp/wire-errors'
import { describe, expect, it } from 'vitest'
import { isLoginChallenge, joinChallenges } from './login-challenge.ts'

const link = (name: string) => ({ url: `https://mcp.example.com/oauth/connect/${name}`, message: `Log in to ${name}.` })
const byHeader = (name: string) =>
  reject('insufficient_scope', { headers: { 'www-authenticate': `Bearer scope="upstream:${name}"` }, links: [link(name)] })
const byQuestion = (name: string) =>
  reject('login_needed', { result: { resultType: 'input_required', inputRequests: { [`login-${name}`]: { params: link(name) } } } })

describe('challenges of several logins', () => {
  it('are one question with all links', () => {
    expect(joinChallenges([byQuestion('wiki'), byQuestion('chat')])?.result).toEqual({
      resultType: 'input_required',
      inputRequests: { 'login-wiki': { params: link('wiki') }, 'login-chat': { params: link('chat') } },
    })
  })

  it('are one header, that of the first, with all links for sessions that know them', () => {
    const joined = joinChallenges([byHeader('wiki'), byHeader('chat')])
    expect(joined?.headers).toEqual(byHeader('wiki').headers)
    expect(joined?.links).toEqual([link('wiki'), link('chat')])
  })

  it('have one link for each provider, however many calls lack it', () => {
    const again = { ...byHeader('wiki'), links: [{ ...link('wiki'), url: 'https://mcp.example.com/another' }] }
    const joined = joinChallenges([byHeader('wiki'), byHeader('chat'), again, again])
    expect(joined?.links?.map(({ message }) => message)).toEqual(['Log in to wiki.', 'Log in to chat.'])
  })

  it('are the header where one question was declined', () => {
    const joined = joinChallenges([byQuestion('wiki'), byHeader('chat')])
    expect([joined?.headers, joined?.result]).toEqual([byHeader('chat').headers, undefined])
  })

  it('are nothing, or themselves', () => {
    expect(joinChallenges([])).toBeUndefined()
    const one = byHeader('wiki')
    expect(joinChallenges([one])).toBe(one)
  })

  it('differ from other rejections', () => {
    const all = [byHeader('wiki'), byQuestion('wiki'), reject('credentials_unavailable', { headers: { 'retry-after': '1' } })]
    expect(all.map(isLoginChallenge)).toEqual([true, true, false])
  })
})
