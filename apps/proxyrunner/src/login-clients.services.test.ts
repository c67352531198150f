import { describeLoginClients } from '@thv/testkit/oauth/describe-login-clients'
import { startLoginRunner } from './testing/login-runner.ts'

describeLoginClients('a runner with an authorization server and a real provider', async (stack, providers) => {
  const config = { disable_upstream_token_injection: true, cimd: { enabled: true } }
  const { runner, issuer } = await startLoginRunner(stack, config, { providers })
  return { url: runner.url, issuer }
})
