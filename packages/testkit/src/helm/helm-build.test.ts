import { describe, expect, it } from 'vitest'
import { versions } from '../cluster/programs/kubernetes-version.ts'
import { buildArguments, helmVersion, moduleFile } from './helm-build.ts'

describe('the module that builds helm', () => {
  const source =
    'module helm.sh/helm/v3\n\ngo 1.24.0\n\nrequire (\n\tk8s.io/api v0.34.0\n\tk8s.io/klog/v2 v2.130.1\n\tk8s.io/utils v0.0.0-20250604170112-4c0f3b243397\n\tsigs.k8s.io/yaml v1.6.0\n)\n'
  const made = moduleFile(source)

  it('has a name of its own and requires helm', () => {
    expect(made).toMatch(/^module helm\.binary$/m)
    expect(made).toContain(`require helm.sh/helm/v3 ${helmVersion}`)
  })

  it('takes the libraries of our API server, and leaves the others alone', () => {
    expect(made).toContain(`\tk8s.io/api ${versions.staging}`)
    expect(made).toContain('\tk8s.io/klog/v2 v2.130.1')
    expect(made).toContain('\tk8s.io/utils v0.0.0-20250604170112-4c0f3b243397')
    expect(made).toContain('\tsigs.k8s.io/yaml v1.6.0')
  })

  it('stamps helm and the version of Kubernetes that it renders for', () => {
    const flags = buildArguments('/out').join(' ')
    expect(flags).toContain(`version.version=${helmVersion}`)
    expect(flags).toContain(`chartutil.k8sVersionMinor=${versions.minor}`)
  })
})
