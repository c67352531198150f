import type { TemplateProblem } from '../deployment/template/template-problem.ts'
import type { OperatorSettings } from '../operator-settings.ts'

/** The end of the names of all accounts that `proxyNames` gives to proxies. */
const RUNNER_ACCOUNT = /-proxy-runner$/

/** Rejects the ServiceAccounts of the operator and of proxies: pods of users never run with their rights. */
export function serviceAccountProblems(
  account: string | undefined,
  { namespace, settings }: { namespace: string; settings: Pick<OperatorSettings, 'podNamespace' | 'operatorAccount'> },
): TemplateProblem[] {
  if (account === undefined) return []
  const isOperator = account === settings.operatorAccount && namespace === settings.podNamespace
  if (!isOperator && !RUNNER_ACCOUNT.test(account)) return []
  const whose = isOperator ? 'the operator' : 'a proxy of this operator'
  return [{ path: 'spec.serviceAccount', message: `is the account of ${whose}, whose rights no MCP server may have: name another one` }]
}
