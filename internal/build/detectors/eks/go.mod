module go.opentelemetry.io/contrib/detectors/aws/eks

go 1.25.0

require go.opentelemetry.io/otel/sdk v1.45.0
