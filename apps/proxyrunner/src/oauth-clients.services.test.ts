import { type Clock, systemClock } from '@thv/kernel/clock'
import type { CallResult, OAuthClient, OAuthClientOptions } from '@thv/testkit/oauth/oauth-client'
import { connectPython } from '@thv/testkit/oauth/python-client'
import { connectV1, connectV2 } from '@thv/testkit/oauth/typescript-clients'
import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import { describe, expect, it } from 'vitest'
import { type GuardedRunner, startGuardedRunner } from './testing/guarded-runner.ts'

/* The official clients do their own OAuth against a protected runner: nothing here knows a token. */

interface Row {
  readonly connect: (options: OAuthClientOptions) => Promise<OAuthClient>
  readonly era: 'legacy' | 'modern'
  /** With a refresh token, version 1 of the TypeScript SDK refreshes instead of asking for more scopes, and gives up. */
  readonly stepsUpWithRefreshToken: boolean
}

const CLIENTS: readonly [string, Row][] = [
  ['TypeScript v1', { connect: connectV1, era: 'legacy', stepsUpWithRefreshToken: false }],
  ['TypeScript v2 in the era before 2026', { connect: connectV2, era: 'legacy', stepsUpWithRefreshToken: true }],
  ['TypeScript v2', { connect: connectV2, era: 'modern', stepsUpWithRefreshToken: true }],
  ['Python in the era before 2026', { connect: connectPython, era: 'legacy', stepsUpWithRefreshToken: true }],
  ['Python', { connect: connectPython, era: 'modern', stepsUpWithRefreshToken: true }],
]

const CODE = 'authorization_code'
const REFRESH = 'refresh_token'
const POLICIES = [
  'permit(principal, action, resource) unless { resource == Tool::"echo" };',
  '@scope("files:write") permit(principal, action, resource == Tool::"echo");',
]

function start(authClock?: Clock): Promise<GuardedRunner> {
  return startGuardedRunner({
    scopes: ['mcp', 'files:write'],
    config: {
      oidc_config: { scopes: ['mcp'] },
      authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies: POLICIES } },
    },
    ...(authClock !== undefined && { authClock }),
  })
}

describe.each(CLIENTS)('%s', (_, { connect, era, stepsUpWithRefreshToken }) => {
  it('finds the provider from a 401, registers, logs in with PKCE and calls; asks for more scopes when a tool needs them', async () => {
    await using guarded = await start()
    const { runner, idp } = guarded
    const grantTypes = stepsUpWithRefreshToken ? [CODE, REFRESH] : [CODE]
    await using client = await connect({ url: runner.url, user: 'ada', era, grantTypes })

    const report = reportOf(await client.call('report_request'))
    expect(report).toMatchObject({ era })
    expect(JSON.stringify(report)).not.toMatch(/bearer/i)
    const [login] = client.visits
    expect(Object.fromEntries(login?.searchParams ?? [])).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      resource: runner.url,
      scope: expect.stringMatching(/\bmcp\b/),
    })
    expect(login?.searchParams.get('scope')).not.toContain('files:write')
    expect(idp.hits(OIDC_PATHS.registration)).toBe(1)
    expect(idp.grants).toMatchObject([{ grantType: CODE, resource: runner.url }])

    expect(await client.tools()).toContain('echo')
    expect(client.visits).toHaveLength(1)
    const echoed = await client.call('echo', { text: 'with more rights' })
    expect(echoed.content[0]?.text).toContain('with more rights')
    expect(client.visits).toHaveLength(2)
    expect(client.visits[1]?.searchParams.get('scope')).toContain('files:write')
    expect(reportOf(await client.call('report_request')).session).toBe(report.session) // somebody else's would have been 404
    expect(idp.hits(OIDC_PATHS.registration)).toBe(1)
  })

  it('refreshes its token within one session', async () => {
    const clock = new MovedClock()
    await using guarded = await start(clock)
    const { runner, idp } = guarded
    idp.accessTokenSeconds = 1
    await using client = await connect({ url: runner.url, user: 'ada', era, grantTypes: [CODE, REFRESH] })
    const before = reportOf(await client.call('report_request'))
    if (era === 'legacy') expect(before.session).toMatch(/./)

    // Some clients look at the clock, the others wait for a 401. The runner tolerates 30 seconds.
    const known = idp.grants.length
    idp.accessTokenSeconds = 3_600
    clock.offsetMs = 120_000
    await systemClock.sleep(1_200)
    expect(reportOf(await client.call('report_request')).session).toBe(before.session)
    expect(new Set(idp.grants.slice(known).map(({ grantType }) => grantType))).toEqual(new Set([REFRESH]))
    expect(client.visits).toHaveLength(1)
  })
})

interface Report {
  readonly era: string
  readonly session: string | null
}

function reportOf({ content }: CallResult): Report {
  return JSON.parse(content[0]?.text ?? '') as Report
}

class MovedClock implements Clock {
  offsetMs = 0
  readonly sleep = systemClock.sleep.bind(systemClock)
  readonly setTimer = systemClock.setTimer.bind(systemClock)

  now(): number {
    return systemClock.now() + this.offsetMs
  }

  monotonic(): number {
    return systemClock.monotonic() + this.offsetMs
  }
}
