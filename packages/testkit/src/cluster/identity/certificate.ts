/** The harness makes its certificates as the embedded API server does. */
export { type Certificate, type CertificateOptions, createCertificate } from '@thv/http/tls/certificate'
