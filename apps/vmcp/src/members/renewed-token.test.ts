import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutbound } from '@thv/http/outbound/outbound'
import { TestClock } from '@thv/kernel/clock'
import { McpHttpError } from '@thv/mcp/client/client-errors'
import { BackendEras } from '@thv/mcp/client/http/backend-eras'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import { staticBackends } from '../discover/static-backends.ts'
import { healthSettings } from '../live/live-server.ts'
import { startGuardedBackend } from '../testing/guarded-backend.ts'
import { FIRST_WAIT_MS, testConfig } from '../testing/test-vmcp.ts'
import { viewSettings } from '../view/built-view.ts'
import { ViewCache } from '../view/view-cache.ts'
import { MemberRoster } from './member-roster.ts'

/** Of lists that are due. */
const DEBOUNCE_MS = 50

describe('a token file of a backend that changes', () => {
  it('has the lists asked for again as soon as the new token is read, once for each token', async () => {
    await using stack = new AsyncDisposableStack()
    const folder = mkdtempSync(join(tmpdir(), 'vmcp-token-'))
    stack.defer(() => rmSync(folder, { recursive: true }))
    const tokenFile = join(folder, 'token')
    writeFileSync(tokenFile, 'one')
    const backend = stack.use(await startGuardedBackend({ toolOf: (value) => value.replace('Bearer ', 'of_') }))
    const outbound = stack.use(createOutbound())
    const clock = new TestClock()
    const log = new CollectingLog()
    const eras = new BackendEras({ clock })
    const roster = new MemberRoster({ outbound, providers: outbound, eras, clock, log, version: '1' })
    const backends = { a: { type: 'bearer_token', bearerToken: { tokenFile } } }
    const config = testConfig({ backends: { a: backend.url }, config: { outgoingAuth: { source: 'inline', backends } } })
    const renewed: string[] = []
    roster.onChange((change) => renewed.push(...change.renewed.map(({ name }) => name)))
    const [member] = roster.apply(await staticBackends(config, {}, log), healthSettings(config)).joined
    if (member === undefined) throw new TypeError('no backend')
    const view = new ViewCache({ roster, settings: viewSettings(config), clock, log, firstWaitMs: FIRST_WAIT_MS })
    stack.defer(async () => {
      await view.close()
      await roster.close()
      eras.close()
    })
    const tools = () => [...view.now.tools.keys()]
    /** The file is read again for the second attempt. */
    const sentAfter401 = async () => {
      await clock.advance(5_000)
      let times = 0
      return await member.observed(async () => {
        const headers = await member.headers()
        if (++times === 1) throw new McpHttpError('mcp_auth_required', 'no', { status: 401 })
        return headers
      })
    }
    view.start()
    await view.attempted
    expect(tools()).toEqual(['of_one'])

    writeFileSync(tokenFile, 'two')
    await clock.advance(10_000)
    await member.headers()
    await expect.poll(() => renewed).toEqual(['a'])
    await clock.advance(DEBOUNCE_MS)
    await expect.poll(tools).toEqual(['of_two'])
    expect(member.revision).toBe(1)

    writeFileSync(tokenFile, 'three')
    expect(await sentAfter401()).toEqual({ authorization: 'Bearer three' })
    await expect.poll(() => renewed).toEqual(['a', 'a'])
    await clock.advance(DEBOUNCE_MS)
    await expect.poll(tools).toEqual(['of_three'])

    expect(await sentAfter401()).toEqual({ authorization: 'Bearer three' })
    expect(renewed).toEqual(['a', 'a'])
  })
})
