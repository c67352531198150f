import { AUTHORIZATION_PASSED, runAuthorizationSuite } from '@thv/testkit/oauth/authorization-suite'
import { expect, it } from 'vitest'
import { startLoginVmcp } from './testing/login-vmcp.ts'

it('conformance authorization: a virtual server with an authorization server passes both scenarios', async () => {
  await using stack = new AsyncDisposableStack()
  const { issuer, vmcp } = await startLoginVmcp(stack)
  const { exitCode, output } = await runAuthorizationSuite({ issuer, resource: vmcp.url, user: 'ada' })
  for (const line of AUTHORIZATION_PASSED) expect(output).toContain(line)
  expect(exitCode).toBe(0)
})
