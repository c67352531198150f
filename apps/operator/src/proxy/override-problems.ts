import { checkResources } from '../deployment/template/pod-template-rules.ts'
import { podTemplateProblems } from '../deployment/template/pod-template-spec.ts'
import { isVariableName } from '../deployment/template/scalars.ts'
import type { TemplateProblem } from '../deployment/template/template-problem.ts'
import type { ProxySpec } from './proxy-deployment.ts'

/** Checks the parts of the spec that go into the proxy's objects unchanged, as the API server would. */
export function overrideProblems({ resources, resourceOverrides }: Pick<ProxySpec, 'resources' | 'resourceOverrides'>): TemplateProblem[] {
  const problems: TemplateProblem[] = []
  const report = (path: string, message: string) => void problems.push({ path, message })
  const { proxyDeployment, proxyService } = resourceOverrides
  const at = 'spec.resourceOverrides'
  checkMetadata(proxyDeployment, `${at}.proxyDeployment`, problems)
  checkMetadata(proxyDeployment.podTemplateMetadataOverrides, `${at}.proxyDeployment.podTemplateMetadataOverrides`, problems)
  checkMetadata(proxyService, `${at}.proxyService`, problems)
  proxyDeployment.env.forEach(({ name }, index) => {
    if (!isVariableName(name)) {
      report(`${at}.proxyDeployment.env[${index}].name`, 'expects a name of letters, digits, _, . and -, not beginning with a digit')
    }
  })
  checkResources({ ...resources }, 'spec.resources', report)
  return problems
}

function checkMetadata({ labels, annotations }: { labels: object; annotations: object }, at: string, problems: TemplateProblem[]): void {
  problems.push(...podTemplateProblems({ labels, annotations }, { type: 'TemplateMeta', at }))
}
