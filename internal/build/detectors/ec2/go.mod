module go.opentelemetry.io/contrib/detectors/aws/ec2/v2

go 1.25.0

require go.opentelemetry.io/otel/sdk v1.45.0
