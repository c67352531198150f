import { describe, expect, it } from 'vitest'
import { withLinks } from './url-elicitation.ts'
import { answerOf, reject } from './wire-errors.ts'

const LINK = { url: 'https://mcp.example.com/oauth/connect/wiki?link=x', message: 'Log in to wiki.' }
const challenge = reject('insufficient_scope', { headers: { 'www-authenticate': 'Bearer x' }, links: [LINK] })
const client = { version: '2025-11-25', capabilities: { elicitation: { url: {} } } }

describe('a rejection with a link', () => {
  it('is error -32042 with a URL elicitation for a client of 2025-11-25 that declared them', () => {
    const answer = answerOf(withLinks(challenge, client), 7)
    expect(answer.status).toBe(200)
    expect(answer.headers).not.toHaveProperty('www-authenticate')
    expect(JSON.parse(answer.body)).toEqual({
      jsonrpc: '2.0',
      id: 7,
      error: {
        code: -32042,
        message: expect.any(String),
        data: { elicitations: [{ mode: 'url', elicitationId: expect.stringMatching(/^[\w-]{36}$/), ...LINK }] },
      },
    })
  })

  it.each([
    ['an older revision', { ...client, version: '2025-06-18' }],
    ['forms alone', { ...client, capabilities: { elicitation: { form: {} } } }],
    ['elicitation without a mode', { ...client, capabilities: { elicitation: {} } }],
    ['nothing', { ...client, capabilities: undefined }],
  ])('stays what it is for a client with %s, and shows no link', (_, other) => {
    expect(withLinks(challenge, other)).toBe(challenge)
    expect(answerOf(challenge, 7).body).not.toContain('connect')
  })

  it('keeps what it says about a login, unless there are several', () => {
    const said = { ...challenge, detail: 'the call needs a login to wiki' }
    expect(withLinks(said, client).detail).toBe(said.detail)
    const several = withLinks({ ...said, links: [LINK, { ...LINK, message: 'Log in to chat.' }] }, client)
    expect(several).toMatchObject({ error: 'url_elicitation_required', data: { elicitations: [{}, {}] } })
    expect(several.detail).toBeUndefined()
  })

  it('has an id of its own in every answer', () => {
    const ids = [1, 2].map(() => JSON.stringify(withLinks(challenge, client).data))
    expect(ids[0]).not.toBe(ids[1])
  })
})
