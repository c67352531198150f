import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Certificate, createCertificate } from './certificate.ts'

/** All keys of one API server. They live as long as its folder, so a restarted server is the same to its clients. */
export interface Credentials {
  readonly ca: Certificate
  readonly adminToken: string
  readonly serviceAccountKey: KeyObject
  readonly files: {
    readonly ca: string
    readonly serverCert: string
    readonly serverKey: string
    readonly serviceAccountKey: string
    readonly serviceAccountPublicKey: string
    readonly tokens: string
  }
}

/** `hosts` are further addresses of the API server, besides loopback and its name in a cluster. */
export async function writeCredentials(folder: string, hosts: readonly string[] = []): Promise<Credentials> {
  const pki = join(folder, 'pki')
  await mkdir(pki, { mode: 0o700 })
  const write = async (name: string, content: string) => {
    await writeFile(join(pki, name), content, { mode: 0o600 })
    return join(pki, name)
  }
  const ca = createCertificate({ commonName: 'thv test authority', ca: true })
  const server = createCertificate({
    commonName: 'kube-apiserver',
    hosts: ['127.0.0.1', ...hosts, 'localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
    issuer: ca,
  })
  const account = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const adminToken = randomBytes(24).toString('base64url')
  return {
    ca,
    adminToken,
    serviceAccountKey: createPrivateKey(account.privateKey),
    files: {
      ca: await write('ca.crt', ca.certPem),
      serverCert: await write('server.crt', server.certPem),
      serverKey: await write('server.key', server.keyPem),
      serviceAccountKey: await write('service-account.key', account.privateKey),
      serviceAccountPublicKey: await write('service-account.pub', account.publicKey),
      tokens: await write('tokens.csv', `${adminToken},admin,admin,"system:masters"\n`),
    },
  }
}

export interface KubeconfigCluster {
  readonly url: string
  readonly caPem: string
  /** One of the two. */
  readonly token?: string
  readonly certificate?: Certificate
}

export async function writeKubeconfig(path: string, cluster: KubeconfigCluster): Promise<void> {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const { token, certificate } = cluster
  const user = certificate
    ? `{ client-certificate-data: ${base64(certificate.certPem)}, client-key-data: ${base64(certificate.keyPem)} }`
    : `{ token: ${token} }`
  const text = `apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: ${cluster.url}
    certificate-authority-data: ${base64(cluster.caPem)}
users:
- name: admin
  user: ${user}
contexts:
- name: test
  context: { cluster: test, user: admin, namespace: default }
current-context: test
`
  await writeFile(path, text, { mode: 0o600 })
}
